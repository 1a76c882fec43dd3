"""A small writer of LLVM IR: names for values, loops with carried values, branches.

llvmlite has a builder too, but it knows neither `splat` constants nor opaque calls to
target intrinsics, and text can be read beside the processor's manual.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(slots=True)
class Loop:
    """A counted loop while it is written.

    Attributes:
        index: The counter, an i64.
        values: What is carried: at the top of the body and, after the loop, at its end.
    """

    index: str
    values: list[str]
    following: list[str] = field(default_factory=list)

    def carry(self, values: Sequence[str]) -> None:
        """Hand the values of the next turn on; called once, at the body's end."""
        self.following = list(values)


class FunctionText:
    """The text of one function."""

    def __init__(
        self, name: str, parameters: Sequence[str], *, internal: bool = False
    ) -> None:
        """Begin a function that returns nothing.

        Args:
            name: Without the `@`.
            parameters: With types, for example `ptr %a`.
            internal: Whether only this module calls it.
        """
        kind = "internal void" if internal else "void"
        # Without it LLVM makes loops that clear memory into calls of a library.
        attributes = 'nounwind "no-builtins"' + (" noinline" if internal else "")
        self._lines = [
            f"define {kind} @{name}({', '.join(parameters)}) {attributes} {{",
            "entry:",
        ]
        self._block = "entry"
        self._count = 0
        self.declared: set[str] = set()

    def text(self) -> str:
        """Close the function."""
        return "\n".join([*self._lines, " ret void", "}"])

    def let(self, expression: str) -> str:
        """Name the value of an instruction."""
        name = self._fresh("t")
        self._lines.append(f" {name} = {expression}")
        return name

    def do(self, instruction: str) -> None:
        """Add an instruction without a value."""
        self._lines.append(f" {instruction}")

    def call(self, kind: str, name: str, *arguments: str) -> str:
        """Call an intrinsic that returns `kind`; arguments carry their types."""
        types = ", ".join(_type(argument) for argument in arguments)
        self.declared.add(f"declare {kind} @{name}({types})")
        return self.let(f"call {kind} @{name}({', '.join(arguments)})")

    def slot(self, pointer: str, index: int, kind: str = "i64") -> str:
        """Load the 8-byte slot `index` of a table of arguments."""
        place = self.at(pointer, str(index), "i64")
        return self.let(f"load {kind}, ptr {place}, align 8")

    def at(self, pointer: str, index: str, kind: str = "i8") -> str:
        """Address of element `index` (i64) of type `kind`."""
        return self.let(f"getelementptr {kind}, ptr {pointer}, i64 {index}")

    def load(self, kind: str, pointer: str, align: int = 1) -> str:
        """Load a value from an address that need not be aligned."""
        return self.let(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, kind: str, value: str, pointer: str, align: int = 1) -> None:
        """Store a value at an address that need not be aligned."""
        self.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def splat(self, lanes: int, kind: str, value: str) -> str:
        """A vector with one value in all its lanes."""
        vector = f"<{lanes} x {kind}>"
        first = self.let(f"insertelement {vector} poison, {kind} {value}, i32 0")
        return self.let(
            f"shufflevector {vector} {first}, {vector} poison, "
            f"<{lanes} x i32> zeroinitializer"
        )

    def smaller(self, left: str, right: str) -> str:
        """The smaller of two unsigned i64."""
        less = self.let(f"icmp ult i64 {left}, {right}")
        return self.let(f"select i1 {less}, i64 {left}, i64 {right}")

    @contextmanager
    def loop(
        self,
        start: str,
        stop: str,
        step: int = 1,
        carried: Sequence[tuple[str, str]] = (),
    ) -> Iterator[Loop]:
        """Write a loop over i64 from `start` below `stop`; carried: (type, first)."""
        number = self._fresh("l")[1:]
        head, body, latch, done = (f"{number}.{part}" for part in "hbed")
        before = self._block
        self.do(f"br label %{head}")
        index, following = f"%{number}.i", f"%{number}.n"
        names = [f"%{number}.v{place}" for place in range(len(carried))]
        self._open(head)
        where = len(self._lines)
        inside = self.let(f"icmp ult i64 {index}, {stop}")
        self.do(f"br i1 {inside}, label %{body}, label %{done}")
        self._open(body)
        loop = Loop(index, names)
        yield loop
        if len(loop.following) != len(carried):
            message = "a loop must hand on as many values as it carries"
            raise ValueError(message)
        self.do(f"br label %{latch}")
        self._open(latch)
        self.do(f"{following} = add i64 {index}, {step}")
        self.do(f"br label %{head}")
        phis = [f" {index} = phi i64 [{start}, %{before}], [{following}, %{latch}]"]
        for name, (kind, first), value in zip(
            names, carried, loop.following, strict=True
        ):
            phis.append(
                f" {name} = phi {kind} [{first}, %{before}], [{value}, %{latch}]"
            )
        self._lines[where:where] = phis
        self._open(done)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Write code that runs only where the i1 `condition` holds."""
        number = self._fresh("w")[1:]
        self.do(f"br i1 {condition}, label %{number}.y, label %{number}.z")
        self._open(f"{number}.y")
        yield
        self.do(f"br label %{number}.z")
        self._open(f"{number}.z")

    def label(self, name: str) -> None:
        """Begin a block by hand; the block before must have ended in a branch."""
        self._open(name)

    def _open(self, block: str) -> None:
        self._lines.append(f"{block}:")
        self._block = block

    def _fresh(self, letter: str) -> str:
        self._count += 1
        return f"%{letter}{self._count}"


def module(functions: Sequence[FunctionText], extra: str = "") -> str:
    """Join functions and their declarations."""
    declared: set[str] = set()
    for function in functions:
        declared |= function.declared
    texts = [function.text() for function in functions]
    return "\n".join([*sorted(declared), extra, *texts, ""])


def floats(value: float) -> str:
    """A float32 constant as LLVM writes it: rounded, as the bits of the same double."""
    (rounded,) = struct.unpack("f", struct.pack("f", value))
    (bits,) = struct.unpack(">Q", struct.pack(">d", rounded))
    return f"0x{bits:016X}"


def _type(argument: str) -> str:
    """`<8 x i32> %a` → `<8 x i32>`; `<8 x i32> splat (i32 1)` as well."""
    if argument.startswith("<"):
        return argument[: argument.index(">") + 1]
    return argument.split(" ", 1)[0]
