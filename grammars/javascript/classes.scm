(comment) @comment
(hash_bang_line) @comment
(function_declaration name: (_) @name parameters: (_) @name)
(generator_function_declaration name: (_) @name parameters: (_) @name)
(method_definition name: (_) @name parameters: (_) @name)
(class_declaration name: (_) @name)
(class_heritage) @name
(variable_declarator name: (_) @name
  value: [(arrow_function parameters: (_)? @name)
          (function_expression parameters: (_) @name)])
(field_definition property: (_) @name)
