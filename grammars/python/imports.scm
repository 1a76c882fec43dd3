; Names that come from other modules.
(import_from_statement name: (dotted_name (identifier) @import))
(import_from_statement
  name: (aliased_import name: (dotted_name (identifier) @import)))
