"""What the engine asks of a model: facts about it, and one forward pass.

Two implementations: `decoder.py` (own step for the Llama and Qwen2 family) and
`adapter.py` (any causal model of transformers, also the slow twin in tests).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.model.runtime.rope import Rope
    from codekv.storage.tensors import KVTensors

Logits = Literal["none", "last", "all"]


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """BlockMetadata about a loaded model.

    Attributes:
        name: As in the catalog or config.
        family: transformers' `model_type`, for example `qwen2`.
        kv_shapes: Per layer (num_kv_heads, key_dim, value_dim).
        vocab_size: Width of the logits.
        max_positions: The trained length.
        compute: What the weights are computed in: int8, fp32, bf16, fp16.
        device: torch's device string.
        fingerprint: Hex digest of everything that makes KV incompatible: weights,
            tokenizer, rope, compute type, library versions.
        movable: Per layer, whether a block may be used at another position (the
            probe of `probe.py`); all False for absolute positions.
        key_bias: Whether k_proj has a bias that storage should remove first.
        eos_ids: Tokens that end a text.
    """

    name: str
    family: str
    kv_shapes: tuple[tuple[int, int, int], ...]
    vocab_size: int
    max_positions: int
    compute: str
    device: str
    fingerprint: str
    movable: tuple[bool, ...]
    key_bias: bool
    eos_ids: tuple[int, ...]

    @property
    def num_layers(self) -> int:
        """Number of decoder layers."""
        return len(self.kv_shapes)


class Runtime(Protocol):
    """One model on one device; used from the engine's thread only."""

    spec: ModelSpec
    rope: Rope | None
    """How keys are rotated; None where the model has no rotary positions."""

    key_bias_LHD: list[Tensor] | None
    """Per layer [H, D] the bias inside un-rotated keys, or None."""

    def new_kv(self, capacity: int) -> KVTensors:
        """Allocate working tensors for one sequence."""

    def forward(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        start: int,
        logits: Logits = "last",
    ) -> Tensor | None:
        """Compute tokens at slots and positions [start, start + n).

        Writes their keys and values into `kv` and attends causally to every slot
        before each token; slots after `start + n` are neither read nor changed. The
        result does not depend on how a text is cut into calls (bit-equal up to the
        rounding of sums).

        Returns:
            float32 logits [1, V] for `last`, [n, V] for `all`, None for `none`.
        """

    def forward_in_steps(
        self, kv: KVTensors, tokens: Sequence[int], start: int, logits: Logits = "last"
    ) -> Cooperative[Tensor | None]:
        """As `forward`, in steps of a few milliseconds: work for idle time.

        Between steps, a slot may hold new keys and values in some layers and what it
        held before in the others.
        """

    def forward_scattered(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        slots: Sequence[int],
        logits: Logits = "none",
    ) -> Tensor | None:
        """Recompute tokens in place at ascending `slots` (= positions).

        Each attends to every slot up to its own; slots between are read as they
        are. Used to repair moved blocks.

        Returns:
            As `forward`.
        """

    def forward_tree(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        parents: Sequence[int],
        start: int,
        known: int = 0,
    ) -> Tensor:
        """Compute a tree of continuations in one step.

        Token i follows token `parents[i]` (an index below i) or, for -1, the
        sequence's slot `start - 1`. It is written to slot `start + i`, at position
        `start + depth(i)`, and attends to slots below `start` and its ancestors.

        The first `known` tokens stand in their slots from earlier calls with the same
        `start` and are not computed again, so that a tree can grow step by step.

        Returns:
            float32 logits [n - known, V].
        """

    def keep_path(self, kv: KVTensors, start: int, path: Sequence[int]) -> None:
        """Move the tree's tokens `path` (indices, root first) to slots from `start`.

        Keys were rotated for the positions that the path then has, so this copies.
        """
