"""Work for the pauses: make approximate slots exact, compute and store blocks ahead.

Generators for the worker's idle queue; a step is one layer of a chunk, and a keystroke
waits at most for one. Nothing here touches what a request needs: chains have sequences
of their own, and repair overwrites a slot only with its exact value.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.engine.live_sequence import LiveSequence, holding
from codekv.engine.reuse.kv_transfer import read_block
from codekv.storage.blockstore import BlockMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from codekv.cache.key import BlockRef
    from codekv.cooperative import Cooperative
    from codekv.model.runtime.interface import Logits, Runtime
    from codekv.storage.blockstore import BlockStore
    from codekv.storage.tensors import KVTensors

# Tokens of one idle prefill; its end is the longest wait of a keystroke.
IDLE_CHUNK = 64
# Larger chunks compute faster per token, used where nobody has typed for long.
LONG_IDLE_CHUNK = 256
LONG_PAUSE_S = 1.0
# One slice of writing blocks: less than the 15 ms within which work must yield.
FLUSH_MS = 10.0


@dataclass(frozen=True, slots=True)
class Chain:
    """A document's tokens as one sequence, cut into blocks.

    Attributes:
        topic: The document.
        tokens: Begins with what stands before the first block (a marker), if any.
        cuts: Ascending slots at which blocks begin; the last one ends at the end.
        classes: One syntax class per token, for the codec.
        persist: Whether its blocks may reach the disk.
    """

    topic: str
    tokens: tuple[int, ...]
    cuts: tuple[int, ...]
    classes: bytes
    persist: bool


class Chains:
    """Exact sequences of whole documents, for a bounded number of documents."""

    def __init__(self, runtime: Runtime, store: BlockStore, limit: int = 2) -> None:
        self._runtime = runtime
        self._store = store
        self._limit = limit
        self._sequences: OrderedDict[str, LiveSequence] = OrderedDict()
        self.asked_at = -LONG_PAUSE_S
        self._scratch: LiveSequence | None = None
        self.ms_per_token = 2.0

    def chunk(self) -> int:
        """How many tokens a step may have: more once nobody has typed for a while."""
        is_long = time.perf_counter() - self.asked_at > LONG_PAUSE_S
        return LONG_IDLE_CHUNK if is_long else IDLE_CHUNK

    def sequences(self) -> list[LiveSequence]:
        """All chains; every slot in them is exact."""
        return list(self._sequences.values())

    def warm(
        self, chain: Chain, sources: Iterable[LiveSequence] = ()
    ) -> Cooperative[int]:
        """Compute a document's chain and store its blocks.

        Args:
            chain: The document up to where it is being worked on.
            sources: Sequences whose exact slots may be copied instead of computed.

        Returns:
            How many tokens were computed.
        """

        def take() -> tuple[LiveSequence, Cooperative[int]]:
            seq = self._sequence(chain.topic)
            refs = self._refs(chain)
            self._store.hold(chain.topic, refs)
            seq.crop(seq.common_prefix(chain.tokens))
            for source in sources:
                common = min(source.common_prefix(chain.tokens), source.num_exact)
                if common > len(seq) + IDLE_CHUNK:
                    seq.copy_prefix(source, common)
            return seq, self._grow(seq, chain, refs, chain.topic)

        return (yield from holding(take))

    def warm_far(self, chain: Chain) -> Cooperative[int]:
        """Compute blocks of a document that nobody works on, and store them.

        They stay as long as memory allows; no sequence is kept of them.

        Returns:
            How many tokens were computed.
        """
        seq, self._scratch = self._scratch, None
        seq = seq or LiveSequence(self._runtime.new_kv(1024))
        seq.crop(seq.common_prefix(chain.tokens))
        computed = yield from self._grow(seq, chain, self._refs(chain))
        self._scratch = seq
        return computed

    def forget(self, topic: str) -> None:
        """Free a document's chain; its stored blocks stay."""
        self._sequences.pop(topic, None)
        self._store.release(topic)

    def kv(self) -> list[KVTensors]:
        """The working tensors of all chains."""
        scratch = [self._scratch] if self._scratch is not None else []
        return [seq.kv for seq in (*self._sequences.values(), *scratch)]

    def drop_oldest(self) -> bool:
        """Free the least recently used chain; False if there is none."""
        if self._scratch is not None:
            self._scratch = None
            return True
        if not self._sequences:
            return False
        self._sequences.popitem(last=False)
        return True

    def clear(self) -> None:
        """Free all chains."""
        self._sequences.clear()
        self._scratch = None

    def _grow(
        self,
        seq: LiveSequence,
        chain: Chain,
        refs: Sequence[BlockRef],
        owner: str | None = None,
    ) -> Cooperative[int]:
        """Compute what `seq` lacks of a chain, storing each block once it is whole."""
        seq.reserve(len(chain.tokens))
        yield from self._store_blocks(seq, chain, refs, owner)
        computed = 0
        while len(seq) < len(chain.tokens):
            part = chain.tokens[len(seq) : len(seq) + self.chunk()]
            yield from self._runtime.forward_in_steps(seq.kv, part, len(seq), "none")
            seq.append(part)
            computed += len(part)
            yield
            # At once, so that a restart or a crash finds what was computed so far.
            yield from self._store_blocks(seq, chain, refs, owner)
        return computed

    def _sequence(self, topic: str) -> LiveSequence:
        seq = self._sequences.pop(topic, None)
        if seq is None:
            if len(self._sequences) >= self._limit:
                _, seq = self._sequences.popitem(last=False)
                seq.crop(0)
            else:
                seq = LiveSequence(self._runtime.new_kv(1024))
        seq.topic = topic
        self._sequences[topic] = seq
        return seq

    def _store_blocks(
        self,
        seq: LiveSequence,
        chain: Chain,
        refs: Sequence[BlockRef],
        owner: str | None,
    ) -> Cooperative[None]:
        """Store each whole block that the sequence holds and the store lacks."""
        spans = zip(chain.cuts, chain.cuts[1:], strict=False)
        for (lo, hi), ref in zip(spans, refs, strict=True):
            if hi > len(seq):
                break
            hit = self._store.match([ref])[0]
            if hit is not None and hit.kind == "chain":
                continue
            facts = BlockMetadata(
                chain.classes[lo:hi],
                cost_s=(hi - lo) * self.ms_per_token / 1e3,
                persist=chain.persist,
                # Nobody has worked on what no document holds.
                volatile=owner is None,
            )
            self._store.put(ref, read_block(self._runtime, seq, lo, hi), facts)
            self._store.flush(FLUSH_MS)
            if owner is not None:
                # What the document needs stays in memory while it is open.
                self._store.hold(owner, refs)
            yield

    def _refs(self, chain: Chain) -> list[BlockRef]:
        """The chain's blocks; its root is what stands before the first one."""
        start = chain.cuts[0] if chain.cuts else 0
        parent = self._store.ref(None, chain.tokens[:start]).chain if start else None
        refs = []
        for lo, hi in zip(chain.cuts, chain.cuts[1:], strict=False):
            refs.append(self._store.ref(parent, chain.tokens[lo:hi]))
            parent = refs[-1].chain
        return refs


def repair(
    runtime: Runtime,
    seq: LiveSequence,
    tokens: Sequence[int],
    chunk: Callable[[], int] = lambda: IDLE_CHUNK,
) -> Cooperative[int]:
    """Recompute, left to right, whatever is not exact in `seq` up to `tokens`' end.

    Stops silently when the sequence has moved on to another prompt.

    Returns:
        How many tokens were computed.
    """
    computed = 0
    if (common := seq.common_prefix(tokens)) < len(tokens):
        seq.crop(common)
    seq.reserve(len(tokens))
    while seq.common_prefix(tokens) >= (start := min(seq.num_exact, len(tokens))):
        if start >= len(tokens):
            break
        part = tokens[start : start + chunk()]
        stop = start + len(part)
        wanted: Logits = "last" if stop == len(tokens) else "none"
        logits = yield from runtime.forward_in_steps(seq.kv, part, start, wanted)
        held = min(stop, len(seq)) - start
        seq.mark_exact(start, start + held)
        seq.append(part[held:])
        if logits is not None:
            seq.logits = {len(tokens) - 1: logits[-1]}
        elif len(tokens) - 1 in seq.logits and stop <= len(tokens):
            # They were computed from slots that have just changed.
            seq.logits = {}
        computed += len(part)
        yield
    return computed
