"""Where a text was decoded, as the trimming filters see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.structure.balance import CLOSER_OF, Balance, balance
from codekv.structure.errors import num_errors, with_text
from codekv.structure.lines import line_end, line_start

if TYPE_CHECKING:
    from codekv.completion.shaping.shape import ShapePlan
    from codekv.structure.parser import SyntaxTree


@dataclass(frozen=True, slots=True)
class TrimContext:
    """Where a text was decoded.

    Attributes:
        plan: What may be offered at the cursor.
        special: Texts of the model's special tokens.
        max_lines: The most lines a text may have.
        is_cut: Decoding ended at the length limit, so the last line may be half a line.
        invoked: The user asked for it: even a lone bracket is an answer.
    """

    tree: SyntaxTree
    plan: ShapePlan
    special: tuple[bytes, ...] = ()
    max_lines: int = 12
    is_cut: bool = False
    invoked: bool = False

    @property
    def typed(self) -> bytes:
        """The cursor's line up to the cursor."""
        data, cursor = self.tree.snapshot.data, self.plan.cursor_byte
        return data[line_start(data, cursor) : cursor]

    @property
    def rest(self) -> bytes:
        """The cursor's line from the cursor on."""
        data, cursor = self.tree.snapshot.data, self.plan.cursor_byte
        return data[cursor : line_end(data, cursor)]

    @property
    def head(self) -> bytes:
        """The text from the anchor to the cursor."""
        plan = self.plan
        return self.tree.snapshot.data[plan.anchor_byte : plan.cursor_byte]

    def balance(self, text: bytes) -> Balance:
        """Brackets and quotes from the anchor to the end of a text at the cursor."""
        return balance(self.tree.grammar, self.head + text)

    def num_errors_with(self, text: bytes) -> int:
        """Faults that the file has once a text is accepted."""
        plan = self.plan
        return num_errors(with_text(self.tree, plan.cursor_byte, plan.end_byte, text))

    @property
    def keeps_rest(self) -> bool:
        """Whether the text is put before the rest of the line, not in its place."""
        is_kept = self.plan.end_byte == self.plan.cursor_byte
        return is_kept and bool(self.rest.strip())

    @property
    def is_in_string(self) -> bool:
        """Whether the cursor stands in a string."""
        return bool(self.plan.base) and self.plan.base[-1] not in CLOSER_OF

    @property
    def is_in_brackets(self) -> bool:
        """Whether the cursor's line goes on with brackets that are no block's."""
        plan, grammar = self.plan, self.tree.grammar
        is_indented = grammar is None or grammar.is_indented
        is_block = not is_indented and plan.base[-1:] == (b"{",)
        return bool(plan.line_depth and plan.base) and not is_block
