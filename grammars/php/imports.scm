; Names that come from other files.
(namespace_use_clause (qualified_name (name) @import .))
(base_clause (name) @import)
