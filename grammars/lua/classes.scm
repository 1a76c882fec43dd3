(comment) @comment
(function_declaration name: (_) @name parameters: (_) @name)
(chunk (variable_declaration
  (assignment_statement (variable_list name: (identifier) @name))))
