(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(method_definition name: (_) @name) @function
(variable_declarator name: (_) @name
  value: [(arrow_function body: (statement_block)) (function_expression)]) @function
(assignment_expression left: (_) @name
  right: [(arrow_function body: (statement_block)) (function_expression)]) @function
(pair key: (_) @name
  value: [(arrow_function body: (statement_block)) (function_expression)]) @function
(field_definition property: (_) @name
  value: [(arrow_function body: (statement_block)) (function_expression)]) @function
(class_declaration name: (_) @name) @class
