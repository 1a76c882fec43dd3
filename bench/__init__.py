"""Measurements for people; `codekv bench`, `eval` and `kv report` call them.

| room | what it holds |
| --- | --- |
| `traces` | what a person does in an editor, as data: corpora, places, edits, changes |
| `targets` | whom a trace is replayed against: the service, a server, baselines |
| `quality` | how good the text is: lines, faults, infilling, real changes |
| `reports` | samples to numbers, and numbers to tables, pages and pictures |
| `lab` | what a way of storing keys and values costs, and what it breaks |
| `micro` | one small measurement per file, and counts of this program itself |
| `samples` | a small project of our own to type into; data, never imported |

`run` plays traces against `entrants`; `host` and `speed` say on what. Never here:
anything that the product needs to answer.
"""
