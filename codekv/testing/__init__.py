"""Stand-ins for tests and benchmarks; nothing of the product imports them.

| module | what it holds |
| --- | --- |
| `model`, `tiny`, `models` | runtimes without a download: by hand, random |
| `service` | `ScriptedService`: follows a script, keeps a journal |
| `client`, `wire` | `RawClient`: sends what it is told, hides nothing |
| `editor` | an editor's text by the book: the twin of `lsp.documents` |
| `blocks` | stored blocks for tests of the store |
| `tiles` | packed weights read back number by number |
| `site` | a package index on loopback |
| `other_device` | a second kind of device, simulated |
| `forks`, `hammer` | many processes at once on one store |

`python -m codekv.testing SCRIPT` runs the real language server over `ScriptedService`.

Never here: anything that a user's program needs.
"""
