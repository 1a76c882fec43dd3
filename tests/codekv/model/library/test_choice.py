import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.config import Config, ModelConfig
from codekv.errors import DownloadError
from codekv.model.library import choice, resolve, store
from codekv.model.library.catalog import DEFAULT, LARGE
from codekv.model.library.choice import (
    MachineFacts,
    MachineNotes,
    choose,
    choose_here,
    note_consent,
    note_step,
    read_notes,
    settle_name,
    write_notes,
)

QUICK = MachineNotes(bandwidth_gb_s=30.0)
ROOMY = MachineFacts(memory=8_000_000_000, notes=QUICK, is_here=True)


@pytest.fixture
def machine(home, monkeypatch):
    """A machine with room and quick memory, of which nothing is known yet."""
    monkeypatch.setattr(choice, "memory_limit", lambda: 8_000_000_000)
    monkeypatch.setattr(choice, "measure_bandwidth", lambda: 30.0)
    return monkeypatch


def keep(name, tiny_gguf):
    return store.import_gguf(tiny_gguf, name, "a test", None)


def test_the_larger_model_types_where_it_fits_and_is_quick():
    found = choose(ROOMY)
    assert (found.name, found.offer) == (LARGE.name, False)
    assert "39 ms" in found.why
    assert "predicted from 30 GB/s" in found.why


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(ROOMY, memory=1_500_000_000), "needs 1.9 GB of memory, 1.5 GB"),
        (
            replace(ROOMY, notes=MachineNotes(bandwidth_gb_s=20)),
            "59 ms here (predicted",
        ),
        (
            replace(ROOMY, notes=replace(QUICK, step_ms=60.0)),
            "60 ms here (measured), at most 45",
        ),
        (replace(ROOMY, notes=MachineNotes()), "never measured"),
        (
            replace(ROOMY, is_here=False, notes=replace(QUICK, agreed=False)),
            "was declined",
        ),
    ],
)
def test_else_the_smaller_one_types_and_the_reason_is_given(facts, why):
    found = choose(facts)
    assert (found.name, found.offer) == (DEFAULT.name, False)
    assert why in found.why
    assert "\n" not in found.why


@pytest.mark.parametrize("agreed", [None, True])
def test_a_model_that_would_do_is_offered_and_not_taken_for_granted(agreed):
    found = choose(replace(ROOMY, is_here=False, notes=replace(QUICK, agreed=agreed)))
    assert (found.name, found.offer) == (DEFAULT.name, True)
    assert f"codekv model pull {LARGE.name}" in found.why


@given(
    memory=st.integers(0, 10**11),
    bandwidth=st.floats(0, 1000),
    step=st.none() | st.floats(0, 1000),
    agreed=st.none() | st.booleans(),
    is_here=st.booleans(),
)
def test_only_a_model_that_is_here_is_chosen(memory, bandwidth, step, agreed, is_here):
    notes = MachineNotes("", bandwidth, step, agreed)
    found = choose(MachineFacts(memory, notes, is_here))
    assert found.name in (DEFAULT.name, LARGE.name)
    if found.name == LARGE.name:
        assert is_here
        assert memory > LARGE.num_bytes
        assert step is None or step <= choice.MAX_STEP_MS
    assert not (found.offer and (is_here or agreed is False))


def test_the_default_stands_for_the_smaller_model_until_the_other_is_here(
    machine, tiny_gguf
):
    keep(DEFAULT.name, tiny_gguf)
    found = resolve.resolve_model(ModelConfig(), pull=False)
    assert (found.name, found.notice) == (DEFAULT.name, None)
    assert found.choice.offer
    keep(LARGE.name, tiny_gguf)
    found = resolve.resolve_model(ModelConfig(), pull=False)
    assert (found.name, found.choice.offer) == (LARGE.name, False)
    assert settle_name(Config()).model.name == LARGE.name


def test_a_step_measured_slow_brings_the_smaller_model_back(machine, tiny_gguf):
    for name in (DEFAULT.name, LARGE.name):
        keep(name, tiny_gguf)
    assert not note_step(DEFAULT.name, 99.0)
    assert not note_step(LARGE.name, 40.0)
    assert choose_here().name == LARGE.name
    assert note_step(LARGE.name, 80.0)
    assert choose_here().name == DEFAULT.name
    assert "80 ms here (measured)" in choose_here().why


def test_a_limit_on_the_process_counts(home, monkeypatch):
    resource = pytest.importorskip("resource")
    real = resource.getrlimit

    def limited(kind):
        return (1_500_000_000, -1) if kind == resource.RLIMIT_AS else real(kind)

    monkeypatch.setattr(resource, "getrlimit", limited)
    assert choice.memory_limit() <= 1_500_000_000
    assert "are free" in choose_here().why


def test_without_a_network_the_smaller_one_stays(machine, tiny_gguf, published):
    keep(DEFAULT.name, tiny_gguf)
    note_consent(agreed=True)
    published.site.files.clear()
    with pytest.raises(DownloadError):
        resolve.obtain(LARGE.name, sources=published.only_index)
    sources = published.only_index
    found = resolve.resolve_model(ModelConfig(), pull=True, sources=sources)
    assert found.name == DEFAULT.name
    assert [stored.name for stored in store.list_models()] == [DEFAULT.name]


def test_the_best_bandwidth_seen_is_kept(machine):
    choose_here()
    machine.setattr(choice, "measure_bandwidth", lambda: 5.0)
    choose_here()
    assert read_notes().bandwidth_gb_s == 30.0
    machine.setattr(choice, "measure_bandwidth", lambda: 50.0)
    choose_here()
    assert read_notes().bandwidth_gb_s == 50.0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"processor": 1}'])
def test_damaged_notes_are_forgotten(machine, home, content):
    write_notes(QUICK)
    (home / "auto.json").write_bytes(content)
    assert read_notes() == MachineNotes(choice._processor())


def test_notes_of_another_processor_keep_only_the_consent(machine, home):
    write_notes(MachineNotes("another", 99.0, 1.0, True))
    assert read_notes() == MachineNotes(choice._processor(), agreed=True)
    assert json.loads((home / "auto.json").read_bytes())["processor"] == "another"


def test_the_bandwidth_of_this_machine_is_a_number():
    assert 0.1 < choice.measure_bandwidth() < 10_000
