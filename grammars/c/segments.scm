(function_definition declarator: (_) @name) @function
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_) @name body: (_)) @class
(type_definition
  type: [(struct_specifier) (union_specifier) (enum_specifier)]
  declarator: (_) @name) @class
