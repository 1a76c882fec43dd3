from itertools import pairwise

import pytest
import torch

from codekv.cooperative import finish
from codekv.engine.background.idle import Chain, Chains
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.testing.model import TinyRuntime

RUNTIME = TinyRuntime()
CUTS = (0, 60, 130, 200)


def store() -> BlockStore:
    return BlockStore(
        fingerprint="tiny", budget=StoreBudget(1 << 22), codec=PlainCodec("fp32")
    )


def chain(topic: str) -> Chain:
    tokens = tuple((ord(topic) * 7 + i * i) % 250 for i in range(CUTS[-1]))
    return Chain(topic, tokens, CUTS, bytes(len(tokens)), persist=False)


def stored(blocks: BlockStore, of: Chain):
    """Keys and values of a chain's blocks."""
    parent, found = None, []
    for lo, hi in pairwise(of.cuts):
        ref = blocks.ref(parent, of.tokens[lo:hi])
        hit = blocks.match([ref])[0]
        assert hit is not None
        found += [plane for layer in blocks.load(hit) for plane in layer]
        parent = ref.chain
    return found


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("order", ["abc", "cba", "bac"])
def test_chains_that_wait_for_each_other_store_what_a_lone_one_does(
    order, count
) -> None:
    mine = store()
    chains = Chains(RUNTIME, mine, limit=2)
    jobs = {}
    for topic in "abc":
        jobs[topic] = chains.warm(chain(topic))
        for _ in range(count):
            next(jobs[topic])
    for topic in order:
        finish(jobs[topic])
    for topic in "abc":
        alone = store()
        finish(Chains(RUNTIME, alone).warm(chain(topic)))
        pairs = zip(
            stored(mine, chain(topic)), stored(alone, chain(topic)), strict=True
        )
        for a, b in pairs:
            assert torch.allclose(a, b, atol=1e-3)
