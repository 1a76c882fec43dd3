(comment) @comment
(hash_bang_line) @comment
(function_declaration
  name: (_) @name parameters: (_) @name return_type: (_)? @name)
(function_signature
  name: (_) @name parameters: (_) @name return_type: (_)? @name)
(generator_function_declaration name: (_) @name parameters: (_) @name)
(method_definition
  name: (_) @name parameters: (_) @name return_type: (_)? @name)
(method_signature) @name
(abstract_method_signature) @name
(property_signature name: (_) @name)
(public_field_definition name: (_) @name)
(class_declaration name: (_) @name)
(abstract_class_declaration name: (_) @name)
(class_heritage) @name
(interface_declaration name: (_) @name)
(enum_declaration name: (_) @name)
(type_alias_declaration name: (_) @name)
(variable_declarator name: (_) @name
  value: [(arrow_function parameters: (_)? @name return_type: (_)? @name)
          (function_expression parameters: (_) @name)])
