"""Samples to numbers, and numbers to tables, pages and pictures.

| module | what it holds |
| --- | --- |
| `summary`, `report` | samples to the JSON that is a contract |
| `table`, `compare`, `progress` | for the terminal |
| `markdown`, `sections`, `parts`, `pipes` | `BENCHMARKS.md` |
| `html`, `plots`, `svg`, `index_plot` | the page; `svg` alone writes SVG |
| `picture` | a page as a browser draws it |

Everything after `report` is made from the JSON alone. Never here: measuring.
"""
