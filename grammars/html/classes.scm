(comment) @comment
((attribute (attribute_name) @_key (quoted_attribute_value (attribute_value) @name))
  (#eq? @_key "id"))
