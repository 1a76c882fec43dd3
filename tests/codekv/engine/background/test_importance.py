import pytest

from codekv.cooperative import finish
from codekv.engine.background.importance import weigh
from codekv.engine.live_sequence import LiveSequence
from codekv.engine.reuse.extend import extend
from codekv.engine.reuse.plan import PrefillRequest
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.testing.model import PRE, TinyRuntime


def test_a_runtime_that_cannot_be_watched_notes_nothing() -> None:
    runtime = TinyRuntime()
    store = BlockStore(
        fingerprint="tiny", budget=StoreBudget(1 << 20), codec=PlainCodec("fp32")
    )
    tokens = (PRE, *range(80))
    seq = LiveSequence(runtime.new_kv(4))
    finish(extend(runtime, seq, tokens))
    store.note_attention = lambda ref, share: pytest.fail("noted")
    finish(weigh(runtime, store, seq, PrefillRequest(tokens)))
