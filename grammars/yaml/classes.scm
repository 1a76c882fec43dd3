(comment) @comment
(block_mapping_pair key: (_) @name)
(anchor_name) @name
