; A module's functions are called through the table that it returns.
(function_call name: (dot_index_expression field: (identifier) @import))
(function_call name: (method_index_expression method: (identifier) @import))
