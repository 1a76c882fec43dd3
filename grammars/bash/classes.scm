(comment) @comment
(function_definition name: (_) @name)
(program (variable_assignment name: (_) @name))
(program (declaration_command (variable_assignment name: (_) @name)))
