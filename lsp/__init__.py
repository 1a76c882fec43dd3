"""The language server: a thin translator between editors and the completion service.

No policy about the text of completions; no torch. `lsp/README.md` says what is where.
"""
