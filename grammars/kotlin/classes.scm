(line_comment) @comment
(block_comment) @comment
(function_declaration name: (_) @name (function_value_parameters) @name)
(class_declaration name: (_) @name (primary_constructor)? @name)
(delegation_specifiers) @name
(object_declaration name: (_) @name)
(class_body (property_declaration (variable_declaration) @name))
(source_file (property_declaration (variable_declaration) @name))
(enum_entry (identifier) @name)
