"""The command line, one module per command or group, imported when it is called.

| module | command |
| --- | --- |
| `serve` | the language server and the HTTP endpoint |
| `complete` | one completion, printed |
| `bench` | keystroke benchmarks (calls `bench`) |
| `eval`, `replay`, `evaluation` | quality of the text; what they share |
| `kv` | what compression costs (calls `bench.lab`), and the calibrated table |
| `model`, `cache`, `doctor`, `top` | models, blocks, this machine, live figures |
| `settings`, `console` | options given as `section.key=value`; where output goes |

A command reads options, calls one function and prints. Never here: rules, loops over
tokens, torch at import.
"""
