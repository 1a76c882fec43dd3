"""The language server: a thin translator between editors and the completion service.

Enters here: bytes of the language server protocol. Leaves here: snapshots and requests
to a `CompletionService`, and its answers in the editor's own positions.

`run_stdio`, `run_tcp` (run)      start a server
`Framer`, `PipeWriter` (transport)  messages out of bytes and back
`Protocol` (protocol)             pygls, made to answer every request exactly once
`Server` (server)                 one conversation: its documents, settings, tasks
`features/`                       one file per feature of the protocol
`DocumentStore` (documents)       open texts; `convert` counts their columns,
                                  `addresses` spells their names
`ServiceHolder` (host)            the one service that all conversations share

Never in here: what a completion says, syntax, tokens, torch, files of the user's
project other than its configuration. `lsp/README.md` says which file to open for what.
"""
