"""Syntax-guided choice among several continuations of one text.

Where the first token of a line decides its indentation, the most likely one is often
wrong by one step. So one short continuation per plausible indentation is decoded, and
among those that leave the file least broken the most probable one is taken. On a file
that is broken already, syntax says nothing and probability decides alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.completion.indent import statement_indents
from codekv.structure.errors import num_errors, with_text
from codekv.structure.lines import is_blank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.completion.trim import TrimContext, Trimmed

MAX_STARTS = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """One continuation: what would be offered, and its mean log probability."""

    trimmed: Trimmed
    score: float


def starts(context: TrimContext) -> tuple[bytes, ...]:
    """White space with which a continuation may begin, the shallowest first.

    Empty unless the cursor stands on a line of white space in a language with a
    grammar, and there is more than one place where a statement may begin.
    """
    if context.keeps_rest or not is_blank(context.typed) or context.is_in_string:
        return ()
    found = statement_indents(context.tree, context.plan)
    return found[:MAX_STARTS] if len(found) > 1 else ()


def choose(context: TrimContext, choices: Sequence[Choice]) -> int:
    """Index of the continuation to offer; the first one among equals."""
    tree = context.tree
    is_broken = tree.grammar is None or tree.has_error

    def rank(number: int) -> tuple[bool, int, float]:
        choice = choices[number]
        broken = 0 if is_broken else _num_errors(choice.trimmed, context)
        return not choice.trimmed.text, broken, -choice.score

    return min(range(len(choices)), key=rank)


def _num_errors(trimmed: Trimmed, context: TrimContext) -> int:
    text = trimmed.text.replace(context.tree.snapshot.eol, "\n").encode()
    after = with_text(context.tree, trimmed.start_byte, trimmed.end_byte, text)
    return num_errors(after)
