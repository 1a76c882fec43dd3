(comment) @comment
(rule_set (selectors) @name)
(keyframes_name) @name
((declaration (property_name) @name) (#match? @name "^--"))
