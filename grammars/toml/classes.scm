(comment) @comment
(table [(bare_key) (dotted_key) (quoted_key)] @name)
(table_array_element [(bare_key) (dotted_key) (quoted_key)] @name)
(pair [(bare_key) (dotted_key) (quoted_key)] @name)
