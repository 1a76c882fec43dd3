import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.model.runtime import kernels
from codekv.model.runtime.kernels import (
    KERNELS,
    KernelChoice,
    Portable,
    Stacked,
    choose,
    is_right,
    measure,
)

SAME_INTEGERS = 2e-6


def usable():
    return [name for name in KERNELS if is_right(KernelChoice(name, 8))]


def rows_and_scales(num_rows, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(-127, 128, (num_rows, width), generator=generator)
    return rows.to(torch.int8), torch.rand(num_rows, generator=generator) + 0.1


def run(product, x):
    return product(x, x.abs().amax(-1, keepdim=True).reciprocal())


def test_the_portable_kernel_is_right_everywhere():
    assert is_right(KernelChoice("portable", 8))
    assert is_right(KernelChoice("portable", 7))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    count=st.sampled_from([1, 2, 3, 4, 5, 8, 16, 17, 64]),
    num_rows=st.sampled_from([1, 3, 16, 48, 130]),
    width=st.sampled_from([4, 16, 64, 96, 896]),
    seed=st.integers(0, 99),
)
def test_every_usable_kernel_gives_the_integers_of_the_portable_one(
    count, num_rows, width, seed
):
    rows, scales = rows_and_scales(num_rows, width, seed)
    # Whole numbers, so that no rounding is a tie that kernels may break either way.
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-127, 128, (count, width), generator=generator).float()
    x[:, 0] = 127.0
    expected = run(Portable(rows, scales), x)
    for name in usable():
        found = run(KernelChoice(name, 8).pack(rows, scales), x)
        assert found.shape == (count, num_rows)
        error = (found - expected).abs().max()
        assert error <= SAME_INTEGERS * expected.abs().max().clamp_min(1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_a_row_does_not_depend_on_its_neighbours(name):
    if name not in usable():
        assert not is_right(KernelChoice(name, 8))
        return
    rows, scales = rows_and_scales(64, 96)
    product = KernelChoice(name, 8).pack(rows, scales)
    x = torch.randn(7, 96, generator=torch.Generator().manual_seed(1))
    alone = torch.cat([run(product, row[None]) for row in x])
    assert torch.equal(run(product, x), alone)


@pytest.mark.parametrize("name", KERNELS)
def test_a_row_of_zeros_times_its_scale_is_zero(name):
    if name in usable():
        rows, scales = rows_and_scales(8, 16)
        x = torch.zeros(2, 16)
        found = run(KernelChoice(name, 8).pack(rows, scales), x)
        assert (found * x.abs().amax(-1, keepdim=True) == 0.0).all()


def saturating(rows, scales):
    """What a processor without VNNI does: pairs are added in 16 bits."""

    def multiply(x, inverse):
        signed = (x * inverse * 127.0).round()
        pairs = (signed + 128.0)[:, None, :] * rows.float()[None]
        pairs = pairs.unflatten(-1, (-1, 2)).sum(-1).clamp(-32768, 32767)
        total = pairs.sum(-1) - 128.0 * rows.float().sum(-1)
        return total * scales / 127.0

    return multiply


def test_saturation_is_noticed_and_seven_bits_avoid_it(monkeypatch):
    monkeypatch.setitem(kernels.KERNELS, "saturating", saturating)
    assert not is_right(KernelChoice("saturating", 8))
    assert is_right(KernelChoice("saturating", 7))


def test_a_kernel_that_is_missing_is_passed_over(monkeypatch):
    def missing(rows, scales):
        raise NotImplementedError("no such operator")

    monkeypatch.setattr(
        kernels, "KERNELS", {"onednn": missing, "portable": kernels.Portable}
    )
    choice, seconds = measure()
    assert choice == KernelChoice("portable", 8)
    assert set(seconds) == {"portable"}


def test_the_choice_is_remembered(tmp_path, monkeypatch):
    memory = tmp_path / "data" / "kernels.json"
    calls = []

    def once():
        calls.append(1)
        return KernelChoice("portable", 7), {"portable": 0.1}

    monkeypatch.setattr(kernels, "measure", once)
    assert choose(memory) == choose(memory) == KernelChoice("portable", 7)
    assert len(calls) == 1
    assert kernels.processor() in json.loads(memory.read_text())


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"%s": {"kernel": "magic"}}', '{"%s": 3}']
)
def test_a_damaged_memory_only_costs_a_measurement(tmp_path, monkeypatch, text):
    memory = tmp_path / "kernels.json"
    key = json.dumps(kernels.processor())[1:-1]
    memory.write_text(text.replace("%s", key))
    monkeypatch.setattr(kernels, "measure", lambda: (KernelChoice("portable", 8), {}))
    assert choose(memory) == KernelChoice("portable", 8)
    assert kernels.processor() in json.loads(memory.read_text())


def test_an_unwritable_memory_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(kernels, "measure", lambda: (KernelChoice("portable", 8), {}))
    assert choose(tmp_path / "file" / "kernels.json") == KernelChoice("portable", 8)


@pytest.mark.parametrize(
    "name", [name for name in KERNELS if is_right(KernelChoice(name, 8))]
)
def test_a_matrix_in_parts_gives_the_same_numbers(name):
    generator = torch.Generator().manual_seed(3)
    rows = torch.randint(-127, 128, (100, 64), generator=generator).to(torch.int8)
    scale = torch.rand(100, generator=generator) + 0.5
    x = torch.randn(3, 64, generator=generator)
    inverse = x.abs().amax(-1, keepdim=True).reciprocal()
    choice = KernelChoice(name, 8)
    parts = [
        choice.pack(rows[at : at + 32], scale[at : at + 32]) for at in (0, 32, 64, 96)
    ]
    assert torch.equal(Stacked(parts)(x, inverse), choice.pack(rows, scale)(x, inverse))
