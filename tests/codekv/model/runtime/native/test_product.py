import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.model.runtime.native import attention, dots, operations, vectors
from codekv.model.runtime.native import kernels as kernels_module
from codekv.model.runtime.native.attention_shape import AttentionShape
from codekv.model.runtime.native.checks import operations_are_right
from codekv.model.runtime.native.formats import FORMATS
from codekv.model.runtime.native.kernels import (
    build,
    is_right,
    multiply,
    reference,
    rounded,
    scratch_bytes,
    worst,
    worst_activations,
)
from codekv.model.runtime.native.pool import Pool

from .conftest import MACHINE, RUNNABLE, SHAPE, target_of


def pool_of(kernels, form, width, threads=1, scratch_tiles=1):
    size = scratch_tiles * scratch_bytes(kernels.target, form, width)
    return Pool(kernels.code, threads, size)


@pytest.mark.parametrize("kind", list(FORMATS))
@pytest.mark.parametrize("name", RUNNABLE)
def test_every_kernel_is_right_on_the_worst_numbers(kernels_of, name, kind):
    assert is_right(kernels_of(name), FORMATS[kind])


@pytest.mark.parametrize("kind", list(FORMATS))
@pytest.mark.parametrize("name", RUNNABLE)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_a_product_is_the_same_for_any_number_of_tokens(kernels_of, name, kind, data):
    kernels, form = kernels_of(name), FORMATS[kind]
    rows = data.draw(st.integers(1, 2 * target_of(name).lanes + 1))
    width = 256 * data.draw(st.integers(1, 3))
    if form.group == 1:
        width += 32 * data.draw(st.integers(0, 7))
    count = data.draw(st.integers(1, 21))
    parts = worst(form, max(rows, 2), width)
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    x_TK = rng.standard_normal((count, width)).astype(np.float32)
    pool = pool_of(kernels, form, width)
    whole = multiply(kernels, pool, parts, x_TK)
    expected = reference(parts, x_TK)
    assert np.abs(whole - expected).max() <= 2e-6 * np.abs(expected).max()
    cut = data.draw(st.integers(0, count - 1))
    for part, before in ((x_TK[cut:], cut), (x_TK[: cut + 1], 0)):
        found = multiply(kernels, pool, parts, part)
        assert np.array_equal(found, whole[before : before + len(part)])
    pool.close()


@pytest.mark.parametrize("kind", list(FORMATS))
def test_every_width_and_instruction_gives_the_same_bits(kernels_of, kind):
    form = FORMATS[kind]
    parts = worst(form, 37, 768)
    x_TK = np.concatenate([worst_activations(9, 768), worst_activations(6, 768)])
    found = []
    for name in RUNNABLE:
        kernels = kernels_of(name)
        if kernels.target.has_fma != kernels_of("wide").target.has_fma:
            continue  # Sums that are rounded twice are other numbers.
        found.append(multiply(kernels, pool_of(kernels, form, 768), parts, x_TK))
    assert len(found) >= 2
    assert all(np.array_equal(each, found[0]) for each in found)


def test_threads_change_nothing(kernels_of):
    kernels, form = kernels_of(RUNNABLE[0]), FORMATS["Q5_0"]
    parts, x_TK = worst(form, 301, 512), worst_activations(13, 512)
    one = multiply(kernels, pool_of(kernels, form, 512), parts, x_TK)
    pool = pool_of(kernels, form, 512, threads=4)
    for _ in range(20):
        assert np.array_equal(multiply(kernels, pool, parts, x_TK), one)
    pool.close()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30, 1e-38])
def test_what_is_no_number_stays_in_its_token(kernels_of, value):
    kernels, form = kernels_of(RUNNABLE[0]), FORMATS["Q8_0"]
    parts, x_TK = worst(form, 9, 256), worst_activations(6, 256)
    pool = pool_of(kernels, form, 256)
    before = multiply(kernels, pool, parts, x_TK)
    x_TK[5, 7] = value
    after = multiply(kernels, pool, parts, x_TK)
    assert np.array_equal(after[:5], before[:5])


def test_activations_are_rounded_within_half_a_step():
    x_TK = worst_activations(9, 512)
    step = np.abs(x_TK.reshape(9, -1, 32)).max(-1).repeat(32, 1) / 127
    assert (np.abs(rounded(x_TK) - x_TK) <= 0.5001 * step).all()


@pytest.mark.skipif("avx2" not in RUNNABLE, reason="no AVX2 here")
def test_a_wrong_kernel_is_noticed(objects, monkeypatch):
    # AVX2's saturating product without its guard: too many sums in 16 bits.
    monkeypatch.setattr(dots, "_PAIR_LIMIT", 4 * dots._PAIR_LIMIT)
    form = FORMATS["Q5_0"]
    wrong = build(target_of("avx2"), [form], SHAPE, MACHINE, objects)
    assert not is_right(wrong, form)


SHAPES = (SHAPE, AttentionShape(14, 2, 64, 1e-6), AttentionShape(9, 3, 128, 1e-5))


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_operations_between_products_are_right(kernels_of, objects, name):
    assert operations_are_right(kernels_of(name), SHAPE)
    for shape in SHAPES[1:]:
        made = build(target_of(name), [FORMATS["Q4_0"]], shape, MACHINE, objects)
        assert operations_are_right(made, shape)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (vectors, "_LN2_HIGH", 0.7),  # a wrong exponential: silu and attention
        (operations, "X_WEIGHT", 3),  # a norm that multiplies by its own row
        (attention, "RANGE", 128),  # ranges that leave positions out
    ],
)
def test_a_wrong_operation_is_noticed(objects, monkeypatch, module, name, value):
    with monkeypatch.context() as patch:
        patch.setattr(module, name, value)
        made = build(target_of("portable"), [FORMATS["Q4_0"]], SHAPE, MACHINE, objects)
    assert not operations_are_right(made, SHAPE)


def test_kernels_that_are_wrong_are_not_taken(objects, monkeypatch):
    monkeypatch.setattr(kernels_module, "operations_are_right", lambda *_: False)
    assert kernels_module.choose([FORMATS["Q4_0"]], SHAPE, objects) is None
