(line_comment) @comment
(block_comment) @comment
(method_declaration type: (_) @name name: (_) @name parameters: (_) @name)
(constructor_declaration name: (_) @name parameters: (_) @name)
(class_declaration name: (_) @name)
(superclass) @name
(super_interfaces) @name
(interface_declaration name: (_) @name)
(enum_declaration name: (_) @name)
(record_declaration name: (_) @name parameters: (_) @name)
(annotation_type_declaration name: (_) @name)
(field_declaration declarator: (variable_declarator name: (_) @name))
