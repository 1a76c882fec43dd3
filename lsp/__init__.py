"""The language server: a thin translator without policy of its own."""
