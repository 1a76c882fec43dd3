; Headers are included whole; their names are found where they are used.
(type_identifier) @import
(call_expression function: (identifier) @import)
