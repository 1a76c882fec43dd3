(function_declaration name: (_) @name) @function
(method_declaration name: (_) @name) @function
(type_declaration (type_spec name: (_) @name type: (struct_type))) @class
(type_declaration (type_spec name: (_) @name type: (interface_type))) @class
