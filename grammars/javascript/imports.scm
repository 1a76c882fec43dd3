; Names that come from other modules.
(import_specifier name: (identifier) @import)
(import_clause (identifier) @import)
