"""Indentation of an offered text, made to fit the file it goes into.

A model may count three spaces where the file has four, or write spaces into a file of
tabs. Widths are mapped line by line: a body is one step deeper than its header,
everything else keeps its distance from the line it follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.completion.shaping.shape import opens_body, statement_start
from codekv.structure.balance import CLOSER_OF, marks
from codekv.structure.lines import (
    TAB_WIDTH,
    body_unit,
    indentation,
    is_blank,
    line_at,
    line_start,
    opaque_start,
    says_nothing,
    starts_with_closer,
    width,
)

if TYPE_CHECKING:
    from codekv.completion.shaping.shape import ShapePlan
    from codekv.structure.parser import SyntaxTree
    from grammars.registry import Grammar

_SPACES_PER_TAB = 4  # what models write for a tab: the commonest step in their texts
_NEARBY = 2000  # bytes behind the cursor whose steps of indentation count as its own
_MAX_LOOK_BACK = 5000  # lines: the longest function or class that is looked out of
# What a line begins with that is not a statement of its own.
_CONTINUES = tuple(bytes([byte]) for byte in b")]}:.,+-*/%&|?=<>")


def fit(tree: SyntaxTree, plan: ShapePlan, text: bytes) -> bytes:
    """Give every line of `text` the indentation that the file asks for.

    Lines inside strings stay as they are, and so does text of an unknown language.
    """
    data = tree.snapshot.data
    typed = data[line_start(data, plan.cursor_byte) : plan.cursor_byte]
    has_no_indentation = b"\n" not in text and not is_blank(typed)
    if tree.grammar is None or has_no_indentation or _is_in_string(plan):
        return text
    if opaque_start(tree, line_start(data, plan.cursor_byte)) is not None:
        return text
    return _Fitter(tree, tree.grammar, plan).fit(text)


def statement_indents(tree: SyntaxTree, plan: ShapePlan) -> tuple[bytes, ...]:
    """White space to add on a blank cursor line so that a statement may begin there.

    The shallowest first; empty where the language or the place does not say.
    """
    if tree.grammar is None or _is_in_string(plan):
        return ()
    return _Fitter(tree, tree.grammar, plan).indents()


def _is_in_string(plan: ShapePlan) -> bool:
    return bool(plan.base) and plan.base[-1] not in CLOSER_OF


class _Fitter:
    """Maps the widths a model wrote to the widths the file wants."""

    def __init__(self, tree: SyntaxTree, grammar: Grammar, plan: ShapePlan) -> None:
        data = tree.snapshot.data
        self._grammar = grammar
        self._tree = tree
        self._plan = plan
        self._unit = body_unit(data)
        self._step = width(self._unit) if self._unit else None
        own = line_start(data, plan.cursor_byte)
        self._typed = data[own : plan.cursor_byte]
        self._used = self._steps_nearby()
        # (width in the text, width in the file) of the lines around the next one.
        self._around: list[tuple[int, int]] = []
        self._opens = False

    def _steps_nearby(self) -> set[int]:
        """Steps of indentation that the construct around the cursor already uses."""
        plan, data = self._plan, self._tree.snapshot.data
        steps: set[int] = set()
        at, last = plan.anchor_byte, 0
        while at < min(len(data), plan.cursor_byte + _NEARBY):
            line = line_at(data, at)
            if not is_blank(line) and opaque_start(self._tree, at) is None:
                steps.add(width(line) - last)
                last = width(line)
            at += len(line) + 1
        return steps

    def fit(self, text: bytes) -> bytes:
        """Fit all lines; the first one continues what is typed."""
        lines = text.split(b"\n")
        kept = self._string_lines(text)
        lines[0] = self._first(lines[0])
        for number in range(1, len(lines)):
            if number not in kept and not is_blank(lines[number]):
                lines[number] = self._next(lines[number])
        return b"\n".join(lines)

    def indents(self) -> tuple[bytes, ...]:
        """What may be added to the typed white space before a statement."""
        typed = width(self._typed)
        widths = sorted(w for w in self._statement_widths() if w >= typed)
        return tuple(self._space(w - typed) for w in widths)

    def _string_lines(self, text: bytes) -> set[int]:
        """Numbers of the lines that begin inside a string."""
        plan = self._plan
        head = self._tree.snapshot.data[plan.anchor_byte : plan.cursor_byte]
        found: set[int] = set()
        opened: int | None = None
        for mark in marks(self._tree.grammar, head + text):
            if mark.text in CLOSER_OF or mark.text in CLOSER_OF.values():
                continue
            at = text.count(b"\n", 0, max(0, mark.byte - len(head)))
            if mark.is_open:
                opened = at
            elif opened is not None:
                found.update(range(opened + 1, at + 1))
                opened = None
        if opened is not None:
            found.update(range(opened + 1, text.count(b"\n") + 1))
        return found

    def _first(self, line: bytes) -> bytes:
        if not is_blank(self._typed):
            columns = width(self._typed)
            self._enter(columns, columns, self._typed + line)
            return line
        if is_blank(line):
            self._follow_above()
            return line
        lead = self._normal(indentation(line))
        wrote = width(self._typed + lead)
        is_given = not lead and (self._typed or not self._grammar.is_indented)
        wants = wrote if is_given else self._plausible(wrote, line)
        self._enter(wrote, wants, line)
        if wants == wrote:
            return lead + line.lstrip(b" \t")
        missing = self._space(max(0, wants - width(self._typed)))
        return missing + line.lstrip(b" \t")

    def _follow_above(self) -> None:
        """Take the code line above as what the text follows."""
        at = self._code_above()
        if at is not None:
            line = line_at(self._tree.snapshot.data, at)
            self._enter(width(line), width(line), line)

    def _enter(self, wrote: int, wants: int, line: bytes) -> None:
        self._around.append((wrote, wants))
        rules = self._grammar.lines
        self._opens = rules.opens_body(line) and not rules.is_skipped(line)

    def _next(self, line: bytes) -> bytes:
        lead = self._normal(indentation(line))
        wrote = width(lead)
        while len(self._around) > 1 and self._around[-1][0] > wrote:
            self._around.pop()
        wants = wrote
        if self._around:
            base_wrote, base_wants = self._around[-1]
            step = wrote - base_wrote
            if step > 0 and self._opens and self._step and step not in self._used:
                wants = base_wants + self._step
            else:
                wants = max(0, base_wants + wrote - base_wrote)
        if self._around and self._around[-1][0] == wrote:
            self._around.pop()
        self._enter(wrote, wants, line)
        text = line.lstrip(b" \t")
        return (lead if wants == wrote else self._space(wants)) + text

    def _plausible(self, wrote: int, line: bytes) -> int:
        """The width nearest to what was written that a statement may have here."""
        plan, grammar = self._plan, self._grammar
        is_block = not grammar.is_indented and plan.base[-1:] == (b"{",)
        if plan.line_depth and plan.base and not is_block:
            return wrote
        if line.lstrip()[:1] in _CONTINUES or grammar.lines.is_skipped(line):
            return wrote
        typed = width(self._typed)
        is_step = self._step is None or (wrote - typed) % self._step == 0
        if is_step and not grammar.is_indented:
            # Where brackets rule, a line may stand in many places.
            return wrote
        widths = self._statement_widths()
        possible = sorted(w for w in widths if w >= typed)
        if not possible or wrote in possible:
            return wrote
        if typed and typed in possible:
            return typed
        return min(possible, key=lambda w: (abs(w - wrote), -w))

    def _statement_widths(self) -> set[int]:
        """Where a statement may begin: in the body above or in one around it."""
        data = self._tree.snapshot.data
        at = self._code_above()
        if at is None:
            return set()
        is_header = opens_body(self._tree, at, line_at(data, at))
        at = statement_start(self._tree, at)
        line = line_at(data, at)
        if is_header:
            deeper = width(line) + (self._step or _SPACES_PER_TAB)
            typed = width(self._typed)
            inner = {typed if typed > width(line) else deeper}
            inner |= {width(line) + step for step in self._used if step > 0}
            # Labels and cases may stand as far out as the header.
            return inner if self._grammar.is_indented else {*inner, width(line)}
        widths, least = {width(line)}, width(line)
        for _ in range(_MAX_LOOK_BACK):
            if at == 0 or least == 0:
                break
            at = line_start(data, at - 1)
            line = line_at(data, at)
            if is_blank(line) or width(line) >= least:
                continue
            if not says_nothing(self._tree, at, line):
                least = width(line)
                widths.add(least)
        return widths

    def _code_above(self) -> int | None:
        """The nearest line above the cursor's that is code."""
        data = self._tree.snapshot.data
        at = line_start(data, self._plan.cursor_byte)
        for _ in range(_MAX_LOOK_BACK):
            if at == 0:
                return None
            at = line_start(data, at - 1)
            line = line_at(data, at)
            if line.rstrip().endswith(b"\\"):
                return None
            is_lone = starts_with_closer(line) or line.strip() == b"{"
            if is_lone and opens_body(self._tree, at, line):
                return at
            if not is_blank(line) and not says_nothing(self._tree, at, line):
                return at
        return None

    def _normal(self, lead: bytes) -> bytes:
        """White space in the file's own kind: tabs or spaces."""
        if self._unit == b"\t" and lead and not lead.strip(b" "):
            return b"\t" * round(len(lead) / _SPACES_PER_TAB) or lead
        if self._unit and self._unit != b"\t" and b"\t" in lead:
            return lead.replace(b"\t", self._unit)
        return lead

    def _space(self, columns: int) -> bytes:
        """White space of a width, in the file's own kind."""
        if self._unit != b"\t":
            return b" " * columns
        return b"\t" * (columns // TAB_WIDTH) + b" " * (columns % TAB_WIDTH)
