"""Controls: the same treatment given to as many other tokens.

A rule such as "indentation deserves full precision" only means something if as many
random tokens, recent tokens or much-attended tokens do not gain as much. Every
control marks as many tokens as the rule it is held against.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.lab.scheme import CodecScheme
from codekv.storage.codec import ClassCodec
from codekv.storage.presets import NUM_CLASSES, BitPolicy
from codekv.structure.classes import CLASS_NAMES, COMMENT, INDENT, NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bench.lab.context import Text
    from codekv.storage.calibrate import Pair

    Mark = Callable[[Text], set[int]]
    """Chooses context tokens."""

# Bits of keys and values: unharmed, safe and harmful (`docs/compression.md`).
FULL: Pair = (16, 16)
# Bits of keys and values.
FOUR: Pair = (4, 4)
# As above.
TWO: Pair = (2, 2)

CONTROLLED: tuple[Pair, ...] = (TWO, FOUR)
"""Widths at which classes are held against random tokens."""


def of_class(kind: int, text: Text) -> set[int]:
    """Tokens of one class."""
    return {i for i, value in enumerate(text.classes) if value == kind}


def random_others(kind: int, text: Text) -> set[int]:
    """As many random tokens of other classes, or all of them if there are fewer."""
    chosen = of_class(kind, text)
    others = [i for i in range(text.num_context) if i not in chosen]
    source = random.Random(f"{text.name}{kind}")
    return set(source.sample(others, min(len(chosen), len(others))))


def random_of(other: int, kind: int, text: Text) -> set[int]:
    """As many random tokens of class `other` as there are of `kind`."""
    pool = sorted(of_class(other, text))
    source = random.Random(f"{text.name}{other}{kind}")
    return set(source.sample(pool, min(len(of_class(kind, text)), len(pool))))


def most_recent(kind: int, text: Text) -> set[int]:
    """As many tokens at the end of the context."""
    return set(range(text.num_context - len(of_class(kind, text)), text.num_context))


def most_attended(
    attention: Mapping[str, Sequence[float]], kind: int, text: Text
) -> set[int]:
    """As many tokens, those that the context's end looks at most."""
    mass = attention[text.name]
    ranked = sorted(range(text.num_context), key=lambda i: -mass[i])
    return set(ranked[: len(of_class(kind, text))])


def marked(mark: Mark, text: Text) -> bytes:
    """Classes 1 for chosen tokens and 0 for the others."""
    chosen = mark(text)
    return bytes(1 if i in chosen else 0 for i in range(text.num_context))


def two_tiers(
    name: str, rest: Pair, chosen: Pair, mark: Mark, **more: Any
) -> CodecScheme:
    """Give marked tokens the widths `chosen` (keys, values), all others `rest`."""
    others = NUM_CLASSES - 2
    policy = BitPolicy(
        name,
        (rest[0], chosen[0]) + (rest[0],) * others,
        (rest[1], chosen[1]) + (rest[1],) * others,
        **more,
    )
    return CodecScheme(name, ClassCodec(policy), partial(marked, mark))


def class_schemes(pairs: Sequence[Pair]) -> Iterator[tuple[str, Pair, CodecScheme]]:
    """Every class at every pair of widths, the others at 16; and random controls.

    Yields:
        (class or `random like` class, widths, scheme).
    """
    for kind, name in enumerate(CLASS_NAMES):
        for pair in pairs:
            for label, mark in (
                (name, partial(of_class, kind)),
                (f"random like {name}", partial(random_others, kind)),
            ):
                if label is not name and pair not in CONTROLLED:
                    continue
                title = f"{label} at {pair[0]}/{pair[1]}"
                yield label, pair, two_tiers(title, FULL, pair, mark)


def control_schemes(attention: Mapping[str, Sequence[float]]) -> list[CodecScheme]:
    """The rules and their controls, at equal bits within each family."""
    kept: dict[str, Mark] = {
        "indentation": partial(of_class, INDENT),
        "random": partial(random_others, INDENT),
        "identifiers": partial(random_of, NAME, INDENT),
        "most recent": partial(most_recent, INDENT),
        "most attended": partial(most_attended, attention, INDENT),
    }
    lowered: dict[str, Mark] = {
        "comments": partial(of_class, COMMENT),
        "random": partial(random_others, COMMENT),
    }
    found = [two_tiers("all at 4", FOUR, FOUR, kept["indentation"])]
    found += [
        two_tiers(f"{name} at 16, rest at 4", FOUR, FULL, mark)
        for name, mark in kept.items()
    ]
    found += [
        two_tiers(f"{name} at {pair[0]}, rest at 6/4", (6, 4), pair, mark)
        for pair in CONTROLLED
        for name, mark in lowered.items()
    ]
    return found


def block_schemes(policy: BitPolicy) -> list[CodecScheme]:
    """The same number of tokens per group, at function borders and beside them."""
    codec = ClassCodec(policy)
    return [
        CodecScheme("blocks at function borders", codec),
        CodecScheme("blocks moved by half a block", codec, blocks=half_moved),
    ]


def half_moved(text: Text) -> Sequence[tuple[int, int]]:
    """Cut in the middle of every block instead of between blocks."""
    middles = [(start + stop) // 2 for start, stop in text.blocks]
    borders = [0, *middles[1:], text.num_context]
    return list(zip(borders[:-1], borders[1:], strict=True))
