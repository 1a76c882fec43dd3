(comment) @comment
(pair key: (string) @name)
