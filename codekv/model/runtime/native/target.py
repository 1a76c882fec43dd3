"""What the kernels are generated for: a width, a way to multiply, what there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.model.runtime.native.dots import Avx2, Dot, NeonDot, Vnni

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class KernelTarget:
    """One way to generate the kernels.

    Attributes:
        name: For people and for the choice that is remembered.
        dot: The product of bytes; its lanes are the rows of a tile.
        groups: How many tokens at a time share a weight in registers, descending.
        has_fma: Whether sums may be fused; without it they are rounded twice.
        has_half: Whether half precision can be converted by an instruction.
        pause: The intrinsic for a waiting loop, as an instruction; empty for none.
    """

    name: str
    dot: Dot
    groups: tuple[int, ...]
    has_fma: bool
    has_half: bool
    pause: str

    @property
    def lanes(self) -> int:
        """Rows of a tile."""
        return self.dot.lanes


_X86_PAUSE = "call void @llvm.x86.sse2.pause()"
_ARM_PAUSE = "call void @llvm.aarch64.hint(i32 1)"

# With four tokens AVX2's sixteen registers are full; the others have thirty-two.
TARGETS = {
    each.name: each
    for each in (
        KernelTarget("avx512-vnni", Vnni(16), (8, 4, 2, 1), True, True, _X86_PAUSE),
        KernelTarget("avx-vnni", Vnni(8), (4, 2, 1), True, True, _X86_PAUSE),
        KernelTarget("avx2", Avx2(8), (4, 2, 1), True, True, _X86_PAUSE),
        KernelTarget("neon-dot", NeonDot(4), (8, 4, 2, 1), True, True, _ARM_PAUSE),
        KernelTarget("portable", Dot(4), (2, 1), False, False, ""),
    )
}


def usable(machine: str, features: Mapping[str, bool]) -> list[str]:
    """Names of the targets that a processor's features allow, best guess first."""
    have = {name for name, present in features.items() if present}
    names = []
    if machine.startswith(("x86", "i686", "amd64")) and {"avx2", "fma", "f16c"} <= have:
        if {"avx512vnni", "avx512bw", "avx512vl"} <= have:
            names.append("avx512-vnni")
        if "avxvnni" in have or {"avx512vnni", "avx512vl"} <= have:
            names.append("avx-vnni")
        names.append("avx2")
    if machine.startswith(("aarch64", "arm64")) and "dotprod" in have:
        names.append("neon-dot")
    return [*names, "portable"]
