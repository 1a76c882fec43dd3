(table [(bare_key) (dotted_key) (quoted_key)] @name) @function
(table_array_element [(bare_key) (dotted_key) (quoted_key)] @name) @function
