"""How good the text is, judged by what an author wrote, a parser or a program's tests.

| module | what it holds |
| --- | --- |
| `infilling`, `sandbox` | HumanEval-Infilling, and running its tests apart |
| `next_line`, `faults` | whole lines of real files, and what must never happen |
| `holes` | holes cut into real files, and what a model may write into them |
| `replay`, `chrf` | real changes typed key by key, and how near an offer was |
| `divergence` | how far reused answers are from fresh ones |
| `calibrate` | what `completion.min_confidence` would keep |
| `plain` | the prompt that plugins send, on the same weights |

Judges share no rule with what they judge. Never here: latency.
"""
