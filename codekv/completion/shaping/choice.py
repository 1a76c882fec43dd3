"""Syntax-guided choice among several continuations of one text.

Where the first token of a line decides its indentation, the most likely one is often
wrong by one step, or an empty line. So one continuation per plausible indentation is
begun, and the most probable one is taken, less what it breaks in the file. On a file
that is broken already, syntax says nothing and probability decides alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.completion.shaping.indent import statement_indents
from codekv.completion.shaping.shape import opens_body, statement_start
from codekv.engine.decoding.branches import Start
from codekv.structure.errors import num_errors, with_text
from codekv.structure.lines import (
    is_blank,
    line_at,
    line_end,
    line_start,
    says_nothing,
    width,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.completion.shaping.trim import TrimContext, Trimmed
    from codekv.structure.parser import SyntaxTree
    from codekv.tokens.tokenizer import Tokenizer

MAX_STARTS = 6
"""Indentations that race: a batch of six costs about what one text does."""

MAX_HEADERS, NUM_EACH = 3, 3
"""Indentations, and beginnings for each, that are tried where only a header will do."""

# What a fault is worth in log probability. A header whose body is not there yet is
# what people write; lines that nothing opens are not.
_ERROR, _STRANDED, _BODILESS = 12.0, 12.0, 4.0
_REMARK, _BARE = 4.0, 4.0
"""Of a comment where no comment goes on, as the code behind it is what was wanted; and
of leaving a body that has nothing but its documentation."""

_ALLOWANCE = 4.0
"""How much further a start may fall behind if the others leave lines stranded: as much
as `_BARE`, since what is left out by the race cannot be weighed."""

_MAX_LOOK = 200
"""Lines without code, such as a licence, that are looked through for the next one."""

_DOCUMENTS = (b'"""', b"'''", b'r"""', b"r'''")


@dataclass(frozen=True, slots=True)
class Choice:
    """One continuation: what would be offered, and its log probability."""

    trimmed: Trimmed
    score: float


def starts(context: TrimContext) -> tuple[bytes, ...]:
    """White space with which a continuation may begin, the shallowest first.

    Empty unless the cursor stands on a line of white space in a language with a
    grammar.
    """
    if context.keeps_rest or not is_blank(context.typed) or context.is_in_string:
        return ()
    if context.is_in_brackets:
        return ()
    return statement_indents(context.tree, context.plan)[-MAX_STARTS:]


def begun(context: TrimContext, need: bytes, tokenizer: Tokenizer) -> tuple[Start, ...]:
    """The same as tokens, where there is a choice; `need` is left to be decoded.

    Where the line below is deeper than anything above it opens, only a header will do:
    there, several beginnings are tried for each of the deepest indentations.
    """
    spaces = starts(context)
    tree, cursor = context.tree, context.plan.cursor_byte
    is_structure = tree.grammar is not None and tree.grammar.is_indented
    if not spaces or not is_structure or num_errors(tree):
        found = [_start(space, need, tokenizer) for space in spaces]
        return tuple(found) if len(found) > 1 else ()
    data = tree.snapshot.data
    below = _code_behind(tree, line_end(data, cursor) + 1)
    depth = 0 if below is None else width(line_at(data, below))
    is_short = [width(context.typed + space) < depth for space in spaces]
    found = [_start(space, need, tokenizer) for space in spaces]
    short = [start for start, is_so in zip(found, is_short, strict=True) if is_so]
    if short and _misfit(tree, cursor) == _STRANDED:
        return tuple(
            replace(start, rank=rank)
            for start in short[-MAX_HEADERS:]
            for rank in range(NUM_EACH)
        )
    if len(found) == 1:
        return ()
    # What is less deep than the line below mostly leaves that line stranded, and what
    # leaves a bare body is early, so the others need not be as likely.
    bare = _bare_body(tree, line_start(data, cursor))
    is_shy = [width(context.typed + space) < (bare or 0) for space in spaces]
    return tuple(
        replace(start, allowance=_ALLOWANCE)
        if (short and not is_so) or (bare and not shy)
        else start
        for start, is_so, shy in zip(found, is_short, is_shy, strict=True)
    )


def again(
    context: TrimContext, need: bytes, tokenizer: Tokenizer, first: Trimmed
) -> tuple[Start, ...]:
    """Other beginnings than that of a text, if it breaks something.

    Every indentation once more, now to its end, and second choices at that of the text.
    """
    if not breaks(context, first):
        return ()
    spaces = starts(context)
    text = first.text.encode()
    chosen = text[: len(text) - len(text.lstrip(b" \t"))]
    found = [_start(space, need, tokenizer) for space in spaces]
    deep = [start for start, at in zip(found, spaces, strict=True) if at == chosen]
    ranks = range(1, NUM_EACH + 1)
    return (*found, *(replace(each, rank=rank) for each in deep for rank in ranks))


def _start(space: bytes, need: bytes, tokenizer: Tokenizer) -> Start:
    text = need + space
    encoding = tokenizer.encode(text + b"x")
    # A space mostly belongs to the token of the word behind it.
    whole = [end for end in encoding.ends if end <= len(text)]
    lead = text[whole[-1] :] if whole else text
    return Start(encoding.ids[: len(whole)], lead)


def breaks(context: TrimContext, trimmed: Trimmed) -> bool:
    """Whether a text leaves a file broken that was not."""
    is_known = context.tree.grammar is not None and not num_errors(context.tree)
    return is_known and (not trimmed.text or _broken(trimmed, context) > 0)


def choose(context: TrimContext, choices: Sequence[Choice]) -> int:
    """Index of the continuation to offer; the first one among equals."""
    tree = context.tree
    before = num_errors(tree)

    def rank(number: int) -> tuple[bool, float]:
        choice = choices[number]
        is_known = tree.grammar is not None and before == 0 and choice.trimmed.text
        broken = _broken(choice.trimmed, context) if is_known else 0.0
        return not choice.trimmed.text, broken - choice.score

    return min(range(len(choices)), key=rank)


def _broken(trimmed: Trimmed, context: TrimContext) -> float:
    """What a text costs the file."""
    text = trimmed.text.replace(context.tree.snapshot.eol, "\n").encode()
    after = with_text(context.tree, trimmed.start_byte, trimmed.end_byte, text)
    end = trimmed.start_byte + len(text)
    early = _REMARK if _is_remark(after, trimmed.start_byte, end) else 0.0
    own = line_start(after.snapshot.data, trimmed.start_byte)
    bare, first = _bare_body(after, own), line_at(after.snapshot.data, own)
    if bare is not None and not is_blank(first) and width(first) < bare:
        early += _BARE
    return _ERROR * num_errors(after) + _misfit(after, end) + early


def _bare_body(tree: SyntaxTree, end: int) -> int | None:
    """How deep the body is that the lines before `end` have only documented so far."""
    if tree.grammar is None or not tree.grammar.is_indented or end == 0:
        return None
    data, last = tree.snapshot.data, _code_before(tree, end - 1)
    if last is None or not line_at(data, last).lstrip().startswith(_DOCUMENTS):
        return None
    header = _code_before(tree, last - 1) if last else None
    if header is None or not opens_body(tree, header, line_at(data, header)):
        return None
    return width(line_at(data, last))


def _is_remark(tree: SyntaxTree, start: int, end: int) -> bool:
    """Whether all that was written are comments, and none stands right above."""
    if tree.grammar is None:
        return False
    data, is_skipped = tree.snapshot.data, tree.grammar.lines.is_skipped
    written = data[line_start(data, start) : line_end(data, end)].split(b"\n")
    above = line_start(data, start) - 1
    goes_on = above > 0 and is_skipped(line_at(data, line_start(data, above)))
    lines = [line for line in written if line.strip()]
    return bool(lines) and all(map(is_skipped, lines)) and not goes_on


def _misfit(tree: SyntaxTree, end: int) -> float:
    """Whether the indentation below the line that ends at `end` is what it asks for.

    Parsers forgive indentation that nothing opens; where indentation is structure,
    that is the commonest fault of a line in the wrong place.
    """
    if tree.grammar is None or not tree.grammar.is_indented:
        return 0.0
    data = tree.snapshot.data
    last, below = _code_before(tree, end), _code_behind(tree, line_end(data, end) + 1)
    if last is None:
        return 0.0
    depth = width(line_at(data, statement_start(tree, last)))
    is_deeper = below is not None and width(line_at(data, below)) > depth
    if opens_body(tree, last, line_at(data, last)):
        return 0.0 if is_deeper else _BODILESS
    return _STRANDED if is_deeper else 0.0


def _code_before(tree: SyntaxTree, end: int) -> int | None:
    """Where the last line of code begins that ends at or before `end`."""
    data, at = tree.snapshot.data, line_start(tree.snapshot.data, end)
    for _ in range(_MAX_LOOK):
        if _is_code(tree, at):
            return at
        if at == 0:
            return None
        at = line_start(data, at - 1)
    return None


def _code_behind(tree: SyntaxTree, start: int) -> int | None:
    """Where the first line of code begins from the line start `start` on."""
    data, at = tree.snapshot.data, start
    for _ in range(_MAX_LOOK):
        if at >= len(data):
            return None
        if _is_code(tree, at):
            return at
        at = line_end(data, at) + 1
    return None


def _is_code(tree: SyntaxTree, start: int) -> bool:
    line = line_at(tree.snapshot.data, start)
    return not is_blank(line) and not says_nothing(tree, start, line)
