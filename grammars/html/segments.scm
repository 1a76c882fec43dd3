(script_element (start_tag (tag_name) @name)) @function
(style_element (start_tag (tag_name) @name)) @function
((element (start_tag (tag_name) @name)) @function
  (#any-of? @name "section" "article" "nav" "header" "footer" "aside" "form" "table"
    "template"))
((element (start_tag (tag_name) @name)) @class
  (#any-of? @name "html" "head" "body" "main"))
