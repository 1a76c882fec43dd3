"""A loopback HTTP endpoint for tools that speak a completions API and no LSP.

| module | what it holds |
| --- | --- |
| `questions` | `HttpQuestion`: a request body as text before and after a cursor |
| `texts` | `KnownTexts`: recognises request texts as versions of one document |
| `answers` | reply bodies of the two APIs, whole and streamed |
| `gate` | who may ask: Host, Origin, token, content type, size |
| `app` | the routes, over one `CompletionService` |
| `run` | the listening socket and the server's life |

Never here: torch, models, rules about the text of a completion, LSP.
"""
