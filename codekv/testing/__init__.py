"""Fakes and helpers for tests and benchmarks; nothing else imports them.

`service` has a scripted completion service, `client` a raw LSP client, and
`python -m codekv.testing SCRIPT` runs the real language server over the former.
"""
