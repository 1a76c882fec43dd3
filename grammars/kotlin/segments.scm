(function_declaration name: (_) @name (function_body)? @body) @function
(secondary_constructor) @function
(class_declaration
  name: (_) @name [(class_body) (enum_class_body)]? @body) @class
(object_declaration name: (_) @name (class_body)? @body) @class
(companion_object) @class
