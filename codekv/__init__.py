"""A code-completion engine whose KV cache follows the structure of the code.

Usable without any editor; `lsp` and `bench` sit on top of it. The rooms and the
direction of imports are in `codekv/README.md`.
"""

import os

# Has to stand before anything imports torch. The OpenMP library of torch lets a thread
# that waits for the others spin for milliseconds, which multiplies the time of a step
# by three and more when a build or an editor uses the same cores. This many turns
# cover the gaps within a step; then the thread sleeps.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

__version__ = "0.1.0"
