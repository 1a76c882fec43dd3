"""The laboratory: what a way of storing keys and values costs, and what it breaks.

| module | what it holds |
| --- | --- |
| `corpus`, `context` | the texts, and what the unharmed model makes of them |
| `scheme` | ways of storing: our codecs, and what other engines do |
| `controls` | the same treatment given to as many other tokens |
| `attention` | which tokens and heads a text looks at |
| `measure`, `cursors` | divergence, and whether completions change |
| `laboratory`, `report`, `picture` | one model with all of this, its report |

What calibrates the product is `codekv.storage.calibrate`. Never here: speed of answers.
"""
