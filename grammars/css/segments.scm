(rule_set (selectors) @name) @function
(media_statement) @class
(supports_statement) @class
(keyframes_statement (keyframes_name) @name) @class
(at_rule (at_keyword) @name (block)) @class
