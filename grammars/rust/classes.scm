(line_comment) @comment
(block_comment) @comment
(function_item
  name: (_) @name parameters: (_) @name return_type: (_)? @name)
(function_signature_item) @name
(struct_item name: (_) @name)
(enum_item name: (_) @name)
(trait_item name: (_) @name)
(impl_item trait: (_)? @name type: (_) @name)
(mod_item name: (_) @name)
(macro_definition name: (_) @name)
(field_declaration name: (_) @name)
(enum_variant name: (_) @name)
(const_item name: (_) @name)
