"""Whom a trace is replayed against; `target.Target` is the face they share.

| module | what it holds |
| --- | --- |
| `target` | the service in this process, and a twin that forgets |
| `lsp`, `client` | a server process of our own, through the protocol |
| `against` | another completion server over HTTP |
| `baselines`, `layouts` | what others do, on the same weights |
| `counting` | tokens that a baseline computes, counted without a model |

Never here: which questions are asked.
"""
