"""From decoded bytes to the text that is offered: every rule about text lives here.

| module | what it holds |
| --- | --- |
| `shape` | how much to offer at a cursor: `ShapePlan`, made once per request |
| `stop` | where a text ends while it is decoded: `StopChecker` |
| `trim`, `trim_context` | `finish`: raw bytes to `Trimmed`, filter by filter |
| `overlap` | nothing is said twice: the one rule for the text around the cursor |
| `closers` | brackets and quotes: none too many, none too few |
| `cut` | where an unfinished text may be cut to be shown early |
| `halves` | blocks of braces: whole ones or none |
| `indent`, `levels` | the file's steps, and where a line may stand |
| `choice`, `reranking`, `offer` | several texts for one cursor, and the best of them |

`docs/design/text-rules.md` lists the rules in the order in which they apply. A new rule
is a filter in `trim` with a line there. Never here: a language's name (that is data in
`grammars`), the model, the cache, the editor.
"""
