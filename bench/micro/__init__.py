"""One small measurement per file; each ends with one line of JSON.

| module | what it measures |
| --- | --- |
| `step`, `weights` | a step of the model, and 4 bits beside 8 |
| `candidates` | several answers beside one |
| `index`, `store` | the prefix index and the block store |
| `structure` | what lies between a keystroke and its prompt |
| `protocol` | the language server without a model |
| `house`, `rooms` | this program itself: names, reasons, its rooms |
| `walk` | modules and calls that answer one typed character |

`output` says where a result goes. Never here: sessions of typing (`bench.traces`).
"""
