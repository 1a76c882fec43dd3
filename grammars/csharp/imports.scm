; Classes of the same namespace need no import.
(base_list (identifier) @import)
(object_creation_expression type: (identifier) @import)
(variable_declaration type: (identifier) @import)
(parameter type: (identifier) @import)
