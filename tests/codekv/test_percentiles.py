import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.percentiles import percentile, spread

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(VALUES, st.floats(0, 1))
def test_percentiles_are_numpys(values, share):
    expected = float(np.percentile(values, 100 * share))
    assert percentile(values, share) == pytest.approx(expected, abs=1e-6)


def test_nothing_has_no_percentile_and_a_spread_of_zeros():
    assert percentile([], 0.5) is None
    assert spread([], "p50", "max") == {"p50": 0.0, "max": 0.0}
    assert spread([3, 1, 2], "p50", "max") == {"p50": 2.0, "max": 3.0}
