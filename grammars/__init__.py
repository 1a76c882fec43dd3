"""Languages as data: what differs between programming languages, and nothing else.

- `<language>/`: one folder per language: `language.toml` and its queries
- `blocks/`: what languages of one block style share; also the rules for a text whose
  language has no folder
- `tables`: reads these files
- `registry`: `grammar_for` a language id or a file name, `guessed_grammar` for a text
  of an unknown language; `Grammar`, `LineRules` and `Template` are what it hands out

README.md tells how to add a language. No documents, trees or positions in here, and no
rule of a single language outside its folder.
"""
