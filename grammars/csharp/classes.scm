(comment) @comment
(method_declaration returns: (_) @name name: (_) @name parameters: (_) @name)
(constructor_declaration name: (_) @name parameters: (_) @name)
(property_declaration type: (_) @name name: (_) @name)
(class_declaration name: (_) @name)
(base_list) @name
(struct_declaration name: (_) @name)
(interface_declaration name: (_) @name)
(enum_declaration name: (_) @name)
(enum_member_declaration name: (_) @name)
(record_declaration name: (_) @name)
(namespace_declaration name: (_) @name)
(field_declaration (variable_declaration (variable_declarator name: (_) @name)))
