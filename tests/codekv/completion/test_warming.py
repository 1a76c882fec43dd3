from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.document import CodeDocuments
from codekv.completion.warming import (
    CONTEXT,
    STRETCH,
    WarmLimit,
    far_chains,
    near_chain,
    stretches,
)
from codekv.structure.parser import Parser
from codekv.testing.model import PRE, ByteTokenizer
from codekv.text.snapshot import Snapshot

FUNCTIONS = "".join(
    f"def name_{i}(value):\n    return value + {i} * {i}\n\n\n" for i in range(60)
)


def document(text: str):
    snapshot = Snapshot.from_text("file:///a.py", 1, "python", text)
    return CodeDocuments(ByteTokenizer(), Parser(), 256).update(snapshot)


@given(st.lists(st.tuples(st.integers(1, 300), st.booleans())), st.integers(0, 9000))
def test_stretches_hold_every_missing_block_once(blocks, token) -> None:
    bounds = [0]
    for size, _ in blocks:
        bounds.append(bounds[-1] + size)
    missing = [is_missing for _, is_missing in blocks]
    found = stretches(bounds, missing, token)
    own = [n for _, start, stop in found for n in range(start, stop)]

    assert sorted(own) == [n for n, is_missing in enumerate(missing) if is_missing]
    for context, start, stop in found:
        assert bounds[stop] - bounds[start] <= STRETCH or stop == start + 1
        assert context == 0 or bounds[start] - bounds[context] >= CONTEXT


def test_the_nearest_stretch_comes_first() -> None:
    bounds = list(range(0, 10_001, 100))
    found = stretches(bounds, [True] * 100, 5_050)
    distances = [
        max(bounds[start] - 5_050, 5_050 - bounds[stop], 0) for _, start, stop in found
    ]

    assert distances == sorted(distances)
    assert distances[0] == 0


def test_the_near_chain_ends_with_the_cursors_block() -> None:
    doc = document(FUNCTIONS)
    token = FUNCTIONS.index("return value + 30")
    chain = near_chain(doc, 100, token, (PRE,), persist=True)
    start, stop = chain.cuts[0], chain.cuts[-1]

    assert chain.tokens == (PRE, *doc.encoding.ids[100 : 100 + stop - 1])
    assert start <= token - 100 + 1 < stop
    assert chain.cuts[-2] <= token - 100 + 1


def test_far_chains_tile_what_is_not_known() -> None:
    doc = document(FUNCTIONS)
    bounds = [*doc.cuts, len(doc.encoding.ids)]
    blocks = [tuple(doc.encoding.ids[lo:hi]) for lo, hi in pairwise(bounds)]
    known = set(blocks[::3])

    def knows(asked):
        return [tuple(block) in known for block in asked]

    chains = list(far_chains(doc, 0, (PRE,), False, WarmLimit(1 << 20, knows)))
    found = [chain.tokens[lo:hi] for chain in chains for lo, hi in pairwise(chain.cuts)]

    assert sorted(found) == sorted(b for b in blocks if b not in known)
    assert all(len(chain.classes) == len(chain.tokens) for chain in chains)


def test_nothing_is_computed_beyond_the_limit() -> None:
    doc = document(FUNCTIONS)
    ahead = WarmLimit(1000, lambda asked: [False for _ in asked])
    chains = far_chains(doc, 0, (PRE,), False, ahead)

    assert 700 < sum(len(c.tokens) - c.cuts[0] for c in chains) <= 1000
