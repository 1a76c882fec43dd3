"""Syntax trees and lines: where functions begin, what each token is, what is open.

- `parser`: `Parser` makes a `SyntaxTree` of a snapshot, in slices and up to a limit
- `opaque`: strings and comments of a tree, looked up page by page
- `lines`: what single lines tell where no tree can be trusted
- `anchor`: `find_anchor`, the line at which the prompt is frozen
- `segment`, `split`, `blocks`: where the cache is cut, from functions down to tokens
- `balance`: open brackets and quotes in text that may be broken
- `classes`: the syntax class of each token
- `outline`: what a file defines for others and takes from them
- `errors`: how broken a text is

Everything answers without a tree as well, from lines alone. Rules of a language are
data in `grammars`; no models, prompts or editors in here.
"""
