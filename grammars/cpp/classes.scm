(comment) @comment
(function_definition type: (_)? @name declarator: (_) @name)
(declaration declarator: (function_declarator) @name)
(class_specifier name: (_) @name body: (_))
(base_class_clause) @name
(struct_specifier name: (_) @name body: (_))
(union_specifier name: (_) @name body: (_))
(enum_specifier name: (_) @name body: (_))
(namespace_definition name: (_) @name)
(type_definition declarator: (_) @name)
(field_declaration declarator: (_) @name)
(template_parameter_list) @name
(preproc_def name: (_) @name)
(preproc_function_def name: (_) @name parameters: (_) @name)
