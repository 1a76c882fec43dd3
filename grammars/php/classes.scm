(comment) @comment
(function_definition
  name: (_) @name parameters: (_) @name return_type: (_)? @name)
(method_declaration
  name: (_) @name parameters: (_) @name return_type: (_)? @name)
(class_declaration name: (_) @name)
(base_clause) @name
(class_interface_clause) @name
(interface_declaration name: (_) @name)
(trait_declaration name: (_) @name)
(enum_declaration name: (_) @name)
(enum_case name: (_) @name)
(property_element name: (_) @name)
(const_element (name) @name)
