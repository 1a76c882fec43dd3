"""The laboratory on a tiny model: it measures what it says it measures."""

import json

import pytest
import torch

from bench.lab import controls, corpus
from bench.lab.attention import important_heads, watch
from bench.lab.context import compute_exact, probe, read_text
from bench.lab.corpus import LabText, beginning, samples
from bench.lab.cursors import NUM_GENERATED, places
from bench.lab.laboratory import Laboratory, Size
from bench.lab.measure import divergence
from bench.lab.picture import draw
from bench.lab.report import PARTS, measure_part, merge, model_facts, schemes, table_of
from bench.lab.scheme import CodecScheme, channel_groups, hadamard_rows, symmetric_rows
from bench.traces.corpus import SAMPLES
from codekv.engine.reuse.kv_transfer import slice_planes
from codekv.model.runtime.attention_probe import AttentionMeter
from codekv.storage.calibrate import PAIRS, allocate
from codekv.storage.classtable import load_table, save_table
from codekv.storage.codec import ClassCodec
from codekv.storage.plain import PlainCodec
from codekv.storage.presets import BALANCED, uniform
from codekv.structure.classes import CLASS_NAMES, COMMENT, INDENT
from codekv.testing.model import ByteTokenizer, TinyRuntime

SIZE = Size(num_texts=2, num_context=320, num_probe=16, num_cursors=6)
EXACT_NOISE = 1e-5
"""Un-rotating and rotating back costs rounding."""


@pytest.fixture(scope="module")
def lab():
    files = sorted((SAMPLES / "depot").glob("*.py"))
    texts = [LabText(file.stem, beginning(file.read_bytes())) for file in files]
    return Laboratory(TinyRuntime(), ByteTokenizer(), texts, SIZE, lambda _: None)


def test_texts_are_beginnings_of_pinned_packages_in_turns(monkeypatch, tmp_path):
    def unpacked(source):
        folder = tmp_path / source.name
        for name, path in corpus.TEXTS.items():
            if name.startswith(source.name.replace("-", "_") + "-"):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(b"one line of it\n" * 1000)
        return folder

    monkeypatch.setattr(corpus, "fetch", unpacked)
    found = samples()
    assert len(found) >= 8
    assert len({sample.name.split("-")[0] for sample in found[:6]}) == 6
    assert all(9000 <= len(sample.data) < 9020 for sample in found)
    assert all(sample.data.endswith(b"it\n") for sample in found)


def test_blocks_tile_the_context(lab):
    for text in lab.texts:
        assert text.blocks[0][0] == 0
        assert text.blocks[-1][1] == text.num_context == 320
        assert all(
            a[1] == b[0] for a, b in zip(text.blocks, text.blocks[1:], strict=False)
        )


def test_storing_without_loss_changes_nothing(lab):
    summary = lab.measure(CodecScheme("exact", PlainCodec("fp32")))
    assert summary.kl_mean < EXACT_NOISE
    assert summary.same_top == 1.0
    assert summary.first_divergence == SIZE.num_probe
    assert summary.bits_per_element == 32.0


def test_fewer_bits_diverge_more_and_cost_less(lab):
    found = [
        lab.measure(CodecScheme(f"{w}", ClassCodec(uniform("x", w, w, edge_layers=0))))
        for w in (2, 4, 8)
    ]
    assert found[0].kl_mean > found[1].kl_mean > found[2].kl_mean
    assert found[0].bits_per_element < found[1].bits_per_element


def test_divergence_is_the_textbook_one(lab):
    text, exact = lab.cases[0]
    kv = lab.runtime.new_kv(400)
    CodecScheme("x", ClassCodec(uniform("x", 2, 2))).restore(
        lab.runtime, kv, text, exact
    )
    logits = probe(lab.runtime, kv, text)
    slow = torch.nn.functional.kl_div(
        logits.double().log_softmax(-1),
        exact.logits.double().log_softmax(-1),
        log_target=True,
        reduction="none",
    ).sum(-1)
    assert torch.allclose(divergence(exact, logits).double(), slow, atol=1e-5)


def test_the_probe_is_what_the_model_says_in_one_run(lab):
    text = lab.texts[0]
    exact = compute_exact(lab.runtime, lab.runtime.new_kv(400), text)
    whole = lab.runtime.forward(lab.runtime.new_kv(400), text.tokens, 0, "all")
    assert torch.allclose(exact.logits, whole[text.num_context :], atol=1e-4)


def test_every_control_marks_as_many_tokens_as_its_rule(lab):
    mass = lab.attention[0]
    for text in lab.texts:
        for kind in range(len(CLASS_NAMES)):
            num = len(controls.of_class(kind, text))
            others = text.num_context - num
            assert len(controls.random_others(kind, text)) == min(num, others)
            assert not controls.random_others(kind, text) & controls.of_class(
                kind, text
            )
            assert len(controls.most_recent(kind, text)) == num
            assert len(controls.most_attended(mass, kind, text)) == num


def test_controls_of_one_family_cost_the_same_bits(lab):
    found = controls.control_schemes(lab.attention[0])
    kept = [s for s in found if s.name.startswith(("indentation", "random at 16"))]
    texts = lab.texts
    assert len(kept) == 2
    for text in texts:
        counts = {sum(scheme.classes(text)) for scheme in kept}
        assert len(counts) == 1


def test_half_moved_blocks_tile_and_miss_the_borders(lab):
    for text in lab.texts:
        moved = controls.half_moved(text)
        assert moved[0][0] == 0
        assert moved[-1][1] == text.num_context
        inner = {start for start, _ in moved[1:]}
        assert not inner & {start for start, _ in text.blocks[1:]}


def test_a_runtime_with_its_own_attention_ranks_nothing(lab):
    text = lab.texts[0]
    mass, far = watch(lab.runtime, lab.runtime.new_kv(400), text)
    assert mass == [1.0] * text.num_context
    assert far == []


def test_the_meter_takes_every_kind_of_mask():
    query, key = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 9, 8)
    visible = torch.ones(4, 9, dtype=torch.bool).tril(5)
    added = torch.zeros(4, 9).masked_fill(~visible, -torch.inf)
    found = []
    for mask in (visible, added, None):
        meter = AttentionMeter()
        with meter:
            torch.nn.functional.scaled_dot_product_attention(
                query, key, key, attn_mask=mask
            )
        found.append(meter.mass_S)
        assert meter.mass_S.sum().item() == pytest.approx(2 * 3 * 4, abs=1e-3)
        assert meter.far_LK[0].shape == (2,)
    assert torch.allclose(found[0], found[1])
    assert torch.allclose(found[0], found[2])


def test_important_heads_are_those_that_look_far():
    shares = {"a": [[0.1, 0.9], [0.2, 0.3]], "b": [[0.1, 0.7], [0.2, 0.5]]}
    assert important_heads(shares, 0.5) == ((0, 1), (1, 1))
    assert important_heads({}, 0.5) == ()
    assert important_heads({"a": []}, 0.5) == ()


def test_cursors_find_what_step_by_step_greedy_finds(lab):
    text, exact = lab.cases[0]
    cursors = lab.cursors[text.name]
    assert [c.slot for c in cursors] == places(text, 3)
    cursor = cursors[-1]
    kv = lab.runtime.new_kv(400)
    tokens = list(text.tokens[: cursor.slot])
    logits = lab.runtime.forward(kv, tokens, 0, "last")
    greedy = []
    for _ in range(NUM_GENERATED):
        greedy.append(int(logits[-1].argmax()))
        logits = lab.runtime.forward(kv, greedy[-1:], len(tokens) + len(greedy) - 1)
    assert tuple(greedy) == cursor.greedy


def test_greedy_text_survives_exact_storage_and_not_two_bits(lab):
    assert lab.same_text(CodecScheme("exact", PlainCodec("fp32"))) == (1.0, 1.0)
    ruined = CodecScheme("x", ClassCodec(uniform("x", 2, 2, edge_layers=0)))
    whole, lines = lab.same_text(ruined)
    assert whole <= lines
    assert whole < 1.0


def test_baselines_quantise_as_coarsely_as_they_say():
    torch.manual_seed(0)
    data = torch.randn(2, 70, 32)
    for turn, worst in (
        (symmetric_rows(8, 32), 0.02),
        (symmetric_rows(4, 32), 0.4),
        (hadamard_rows(4, 32), 1.0),
        (channel_groups(4, 64), 0.3),
    ):
        back = turn(data)
        assert back.shape == data.shape
        assert 0 < (back - data).abs().max() < worst
    assert symmetric_rows(4, 32)(torch.randn(1, 3, 12)).shape == (1, 3, 12)
    assert hadamard_rows(4, 32)(torch.randn(1, 3, 12)).shape == (1, 3, 12)


def test_allocation_takes_the_cheapest_table_under_the_limit():
    shares = [0.5, 0.2, 0.1, 0.2]
    loss = {(2, 2): 0.02, (3, 3): 0.01, (4, 4): 0.002, (6, 4): 0.0005, (8, 8): 0.0}
    cost = {(k, p): loss[p] * shares[k] for k in range(4) for p in PAIRS}
    policy = allocate(cost, shares, limit=0.004)
    chosen = list(zip(policy.key_bits, policy.value_bits, strict=True))
    assert sum(cost[kind, pair] for kind, pair in enumerate(chosen)) <= 0.003
    assert (8, 8) not in chosen
    for kind in range(4):
        for cheaper in (pair for pair in PAIRS if sum(pair) < sum(chosen[kind])):
            other = [*chosen[:kind], cheaper, *chosen[kind + 1 :]]
            assert sum(cost[k, pair] for k, pair in enumerate(other)) > 0.003
    strict = allocate(cost, shares, limit=1e-9)
    assert strict.key_bits == (8, 8, 8, 8)
    no_names = allocate(cost, [0.8, 0.0, 0.1, 0.1], limit=0.004)
    assert no_names.key_bits[1] == no_names.key_bits[0]


def test_a_report_has_every_part_and_gives_a_table(lab, tmp_path):
    report = model_facts(lab)
    for part in PARTS:
        report = merge(report, measure_part(lab, part))
    names = [row["name"] for row in report["presets"]]
    assert len(names) == len(set(names))
    assert {"exact", "balanced", "small", "seed", "auto"} <= set(names)
    assert {scheme.name for scheme in schemes()} <= set(names)
    balanced = next(row for row in report["presets"] if row["name"] == "balanced")
    keys = {"bits_per_element", "bytes_per_token", "kl_mean", "kl_p99", "same_top"}
    assert keys | {"same_text", "same_line", "first_divergence"} <= set(balanced)
    assert {row["class"] for row in report["classes"]} >= set(CLASS_NAMES)
    assert json.loads(json.dumps(report)) == report
    table = table_of(report, "model")
    save_table(tmp_path, table)
    assert load_table(tmp_path, "model") == table
    assert draw("title", report["presets"]).count("<circle") == len(
        [row for row in report["presets"] if row["bits_per_element"] <= 18]
    )


def test_a_report_without_calibration_has_no_table():
    assert table_of({"presets": []}, "model") is None


def test_a_text_without_functions_is_one_run_of_blocks():
    sample = LabText("flat", b"x = 1  # one\n" * 60)
    text = read_text(ByteTokenizer(), sample, 300, 16)
    assert text.blocks[-1][1] == 300
    assert text.classes.count(COMMENT) > text.classes.count(INDENT)
    assert slice_planes([(torch.ones(1, 9, 2), torch.ones(1, 9, 2))], 2, 5)
    assert BALANCED.name == "balanced"
