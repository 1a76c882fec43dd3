(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
(compact_constructor_declaration name: (_) @name) @function
(static_initializer) @function
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(annotation_type_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(record_declaration name: (_) @name) @class
