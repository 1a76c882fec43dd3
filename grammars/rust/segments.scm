(function_item name: (_) @name) @function
(macro_definition name: (_) @name) @function
(impl_item type: (_) @name) @class
(struct_item name: (_) @name) @class
(enum_item name: (_) @name) @class
(union_item name: (_) @name) @class
(trait_item name: (_) @name) @class
(mod_item name: (_) @name body: (_)) @class
