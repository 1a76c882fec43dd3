"""Languages as data: tree-sitter grammars, queries and their registry."""
