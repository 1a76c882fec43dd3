(function_declaration name: (_) @name) @function
(assignment_statement
  (variable_list name: (_) @name)
  (expression_list value: (function_definition))) @function
(field name: (_) @name value: (function_definition)) @function
