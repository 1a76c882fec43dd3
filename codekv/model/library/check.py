"""Is a converted model still the model? Compared with the plain transformers forward.

A fixed Python text is run through both; the report says how far the distributions
are apart, how often the first choice is the same, and how long greedy continuations
agree. The reference's own loss betrays a conversion that went wrong as a whole, such
as weights in the wrong order: both sides then agree, on nonsense.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from codekv.config import ModelConfig
from codekv.model.runtime.greedy import go_on
from codekv.model.runtime.loader import load_runtime
from codekv.tokens.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from codekv.model.runtime.interface import Runtime

# Nats: int8 rows reach .012 and a wrong scale or rotation goes beyond .5.
MAX_MEAN_DIVERGENCE = 0.03
# int8 rows keep 97 % of first choices; faults of a conversion under half.
MIN_SAME_TOP = 0.9
MAX_LOSS = 3.5
"""Nats per token; a code model is near 1 on this text, a scrambled one above 7."""

# A usual prompt; float32 needs about half a minute for it on a small model.
_NUM_TOKENS = 1024
# Greedy texts from quarters of the sample, so that one odd place decides nothing.
_NUM_STARTS = 4
# About one line of code.
_GREEDY_TOKENS = 16


@dataclass(frozen=True, slots=True)
class CheckReport:
    """One comparison; divergences are KL(reference || runtime) in nats.

    Attributes:
        same_top: Share of positions with the same first choice.
        same_greedy: Mean share of a greedy continuation that is the same from its
            start on.
        loss: Of the runtime, in nats per token.
        reference_loss: Of the plain forward.
    """

    compute: str
    num_tokens: int
    kl_mean: float
    kl_p99: float
    same_top: float
    same_greedy: float
    loss: float
    reference_loss: float

    @property
    def is_good(self) -> bool:
        """Within every bound."""
        return (
            self.kl_mean <= MAX_MEAN_DIVERGENCE
            and self.same_top >= MIN_SAME_TOP
            and self.reference_loss <= MAX_LOSS
        )

    def lines(self) -> list[str]:
        """The report for people, one fact a line."""
        verdict = "good" if self.is_good else "not usable: convert the model again"
        return [
            f"{self.compute} against plain float32, {self.num_tokens} tokens",
            f"divergence    mean {self.kl_mean:.4f}  p99 {self.kl_p99:.4f}  "
            f"(limit {MAX_MEAN_DIVERGENCE})",
            f"first choice  {self.same_top:.1%} the same  (limit {MIN_SAME_TOP:.0%})",
            f"greedy text   {self.same_greedy:.1%} the same",
            f"loss          {self.loss:.3f}  plain {self.reference_loss:.3f}  "
            f"(limit {MAX_LOSS})",
            verdict,
        ]


def check_model(folder: Path, config: ModelConfig | None = None) -> CheckReport:
    """Compare a store folder's runtime with the plain forward; takes a minute.

    Raises:
        ModelFormatError: One of the two cannot be loaded.
    """
    text = resources.files("codekv.model").joinpath("data/check_text.txt").read_bytes()
    tokens = list(load_tokenizer(folder).encode(text).ids[:_NUM_TOKENS])
    runtime = load_runtime(folder, config or ModelConfig())
    logits_TV, texts = _answers(runtime, tokens)
    compute = runtime.spec.compute
    del runtime
    plain = ModelConfig(runtime="transformers", compute="fp32", device="cpu")
    reference_TV, reference_texts = _answers(load_runtime(folder, plain), tokens)
    return _compare(
        compute,
        torch.tensor(tokens),
        (logits_TV.cpu(), reference_TV),
        list(zip(texts, reference_texts, strict=True)),
    )


def _answers(runtime: Runtime, tokens: list[int]) -> tuple[Tensor, list[list[int]]]:
    """Logits of the whole text, and greedy continuations of some of its prefixes."""
    kv = runtime.new_kv(len(tokens) + _GREEDY_TOKENS)
    logits_TV = runtime.forward(kv, tokens, 0, "all")
    if logits_TV is None:
        raise RuntimeError("a forward with logits returned none")
    texts = []
    for part in range(_NUM_STARTS, 0, -1):
        # From the longest prefix down, because a continuation overwrites what follows.
        slot = len(tokens) * part // _NUM_STARTS
        texts.append(go_on(runtime, kv, slot, logits_TV[slot - 1], _GREEDY_TOKENS))
    return logits_TV, texts


def _compare(
    compute: str,
    tokens_T: Tensor,
    logits: tuple[Tensor, Tensor],
    texts: list[tuple[list[int], list[int]]],
) -> CheckReport:
    ours_TV, plain_TV = (side.log_softmax(-1) for side in logits)
    divergence_T = functional.kl_div(
        ours_TV, plain_TV, log_target=True, reduction="none"
    ).sum(-1)
    following_T1 = tokens_T[1:, None]
    shares = [_same_start(left, right) for left, right in texts]
    return CheckReport(
        compute=compute,
        num_tokens=len(tokens_T),
        kl_mean=float(divergence_T.mean()),
        kl_p99=float(divergence_T.quantile(0.99)),
        same_top=float((ours_TV.argmax(-1) == plain_TV.argmax(-1)).float().mean()),
        same_greedy=sum(shares) / len(shares),
        loss=-float(ours_TV[:-1].gather(1, following_T1).mean()),
        reference_loss=-float(plain_TV[:-1].gather(1, following_T1).mean()),
    )


def _same_start(left: list[int], right: list[int]) -> float:
    same = 0
    while same < len(left) and left[same] == right[same]:
        same += 1
    return same / len(left)
