import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.cache import window
from codekv.cache.window import dynamic_blocks, sparse_positions
from codekv.errors import UsageError

counts = st.integers(0, 300)
shares = st.floats(0.01, 1.0)


def dynamic_positions(
    num_tokens: int, max_length: int, newest_share: float = 0.8
) -> list[int]:
    """Slow twin: keep the newest share of `max_length` tokens, and a sample of others.

    Returns:
        Positions that stay, ascending; all if they are not too many.
    """
    if num_tokens <= max_length:
        return list(range(num_tokens))
    newest = window._newest(max_length, newest_share)
    older = num_tokens - newest
    return [*window._sample(older, max_length - newest), *range(older, num_tokens)]


def test_sparse_keeps_recent_and_every_third_before():
    assert sparse_positions(10, 4, 3) == [0, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("interval", [0, 1])
def test_sparse_without_interval_keeps_everything(interval):
    assert sparse_positions(5, 1, interval) == [0, 1, 2, 3, 4]


def test_dynamic_keeps_the_newest_80_percent_and_samples_the_rest():
    kept = dynamic_positions(100, 20)

    assert kept == [0, 21, 42, 63, *range(84, 100)]


def test_dynamic_keeps_a_short_context_whole():
    assert dynamic_positions(20, 20) == list(range(20))


@given(counts, counts, st.integers(0, 20))
def test_sparse_positions_are_ascending_and_hold_the_recent(num, recent, interval):
    kept = sparse_positions(num, recent, interval)

    assert kept == sorted(set(kept))
    assert set(range(max(num - recent, 0), num)) <= set(kept)
    assert not num or kept[0] == 0


@given(counts, counts, shares)
def test_dynamic_positions_are_ascending_and_exactly_as_many_as_allowed(
    num, limit, share
):
    kept = dynamic_positions(num, limit, share)

    assert kept == sorted(set(kept))
    assert len(kept) == min(num, limit)
    assert all(0 <= position < num for position in kept)


@given(st.lists(st.integers(1, 50), max_size=30), counts, shares)
def test_dynamic_blocks_fit_and_the_newest_are_there(sizes, limit, share):
    kept = dynamic_blocks(sizes, limit, share)

    assert kept == sorted(set(kept))
    assert sum(sizes[i] for i in kept) <= limit
    if sizes and sizes[-1] <= int(limit * share):
        assert kept[-1] == len(sizes) - 1


@given(st.integers(0, 100), st.integers(0, 100), shares)
def test_blocks_of_one_token_are_chosen_like_tokens(num, limit, share):
    assert dynamic_blocks([1] * num, limit, share) == dynamic_positions(
        num, limit, share
    )


def test_block_larger_than_everything_is_left_out():
    assert dynamic_blocks([50, 10, 10], 25) == [1, 2]


def test_negative_counts_are_refused():
    with pytest.raises(UsageError, match="negative"):
        sparse_positions(5, -1, 2)


def test_share_of_nothing_is_refused():
    with pytest.raises(UsageError, match="share"):
        dynamic_blocks([1] * 10, 5, 0.0)
