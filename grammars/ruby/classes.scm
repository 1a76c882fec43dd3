(comment) @comment
(method name: (_) @name parameters: (_)? @name)
(singleton_method object: (_) @name name: (_) @name parameters: (_)? @name)
(class name: (_) @name superclass: (_)? @name)
(module name: (_) @name)
(program (assignment left: (constant) @name))
(body_statement (assignment left: (constant) @name))
