; Names that come from other modules.
(use_declaration argument: (scoped_identifier name: (identifier) @import))
(use_list (identifier) @import)
(use_list (scoped_identifier name: (identifier) @import))
