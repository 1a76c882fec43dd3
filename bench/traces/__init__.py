"""What a person does in an editor, as data, and how it is replayed.

| module | what it holds |
| --- | --- |
| `corpus`, `fetch` | files to edit, and pinned packages fetched by hash |
| `places`, `cursors` | where something is typed, or asked for |
| `trace`, `generators`, `disturb` | steps and episodes, and seeded ways to make them |
| `human`, `live`, `load` | typing as people do: slips, keys on time, a busy machine |
| `changes`, `commits` | what authors changed, from releases and git repositories |
| `replay`, `sample` | playing a trace, and the journal of its answers |

Same files and seed, same trace. Never here: models, prompts, rules about answers.
"""
