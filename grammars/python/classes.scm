; First statement of a module, class or function, if it is only a string.
(module . (comment)* . (expression_statement . (string) @comment .))
(class_definition
  body: (block . (comment)* . (expression_statement . (string) @comment .)))
(function_definition
  body: (block . (comment)* . (expression_statement . (string) @comment .)))
(comment) @comment

(function_definition
  name: (_) @name parameters: (_) @name return_type: (_)? @name)
(class_definition name: (_) @name superclasses: (_)? @name)
