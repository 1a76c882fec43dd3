"""Tokenizers and what is derived from their vocabularies.

- `tokenizer`: `Tokenizer` encodes bytes to an `Encoding`: ids and where each one ends
- `buffer`: `TokenBuffer`, the tokens of one document, redone only around an edit
- `cuts`: places at which a text may be tokenised in two without a difference
- `alphabet`, `vocab`: the bytes of each token, and tokens by the bytes they begin with
- `fim`: the markers of fill-in-the-middle prompts

No syntax, cache or models in here.
"""
