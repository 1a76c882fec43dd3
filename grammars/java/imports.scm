; Classes of the same package need no import.
(type_identifier) @import
