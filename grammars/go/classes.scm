(comment) @comment
(function_declaration
  name: (_) @name parameters: (_) @name result: (_)? @name)
(method_declaration
  receiver: (_) @name name: (_) @name parameters: (_) @name result: (_)? @name)
(method_elem) @name
(type_spec name: (_) @name)
(field_declaration name: (_) @name)
