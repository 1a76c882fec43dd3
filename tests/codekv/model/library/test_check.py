import torch

from codekv.model.library.check import CheckReport, _compare


def report(**changes):
    values = {
        "compute": "int8",
        "num_tokens": 100,
        "kl_mean": 0.005,
        "kl_p99": 0.05,
        "same_top": 0.98,
        "same_greedy": 0.9,
        "loss": 1.2,
        "reference_loss": 1.2,
    }
    return CheckReport(**values | changes)


def test_the_verdict_stands_on_every_bound():
    assert report().is_good
    assert not report(kl_mean=0.1).is_good
    assert not report(same_top=0.5).is_good
    assert not report(reference_loss=9.0).is_good
    assert "convert the model again" in report(kl_mean=0.1).lines()[-1]


def test_equal_answers_have_no_divergence():
    logits = torch.randn(20, 30, generator=torch.Generator().manual_seed(0))
    found = _compare("fp32", torch.arange(20), (logits, logits), [([1, 2], [1, 2])])
    assert abs(found.kl_mean) < 1e-6
    assert found.same_top == found.same_greedy == 1.0
    assert found.loss == found.reference_loss


def test_divergence_is_that_of_the_reference_from_the_runtime():
    ours = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    plain = torch.tensor([[0.9, 0.1], [0.9, 0.1]]).log()
    found = _compare("int8", torch.tensor([0, 0]), (ours, plain), [([1, 2], [1, 3])])
    p = torch.tensor([0.9, 0.1])
    assert abs(found.kl_mean - float((p * (p / 0.5).log()).sum())) < 1e-6
    assert found.same_greedy == 0.5
