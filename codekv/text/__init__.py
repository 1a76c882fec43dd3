r"""Text, edits and positions, in bytes of UTF-8; imports nothing else of ours.

| module | what it holds |
| --- | --- |
| `snapshot` | `Snapshot`: a frozen document at one version, line ends as `\n` |
| `edit` | `Edit`: the one stretch in which two texts differ |
| `position` | `LineIndex`: bytes to lines and columns in UTF-8, 16 or 32, and back |

Never here: syntax, tokens, editors, files.
"""
