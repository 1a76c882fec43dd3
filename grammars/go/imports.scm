; What other packages offer, and what the other files of this one do.
(selector_expression field: (field_identifier) @import)
(type_identifier) @import
(call_expression function: (identifier) @import)
