(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
(destructor_declaration name: (_) @name) @function
(operator_declaration operator: _ @name) @function
(property_declaration name: (_) @name
  accessors: (accessor_list (accessor_declaration body: (block)))) @function
(class_declaration name: (_) @name) @class
(struct_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(record_declaration name: (_) @name) @class
(namespace_declaration name: (_) @name) @class
