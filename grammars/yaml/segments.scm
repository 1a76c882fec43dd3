; The top level, and what its keys hold.
(document (block_node (block_mapping
  (block_mapping_pair key: (_) @name value: (block_node)) @class)))
(document (block_node (block_mapping (block_mapping_pair
  value: (block_node (block_mapping
    (block_mapping_pair key: (_) @name value: (block_node)) @function))))))
