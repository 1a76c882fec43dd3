"""A code-completion engine whose KV cache follows the structure of the code.

Usable without any editor; `lsp` and `bench` sit on top of it. The rooms and the
direction of imports are in `codekv/README.md`.
"""

__version__ = "0.1.0"
