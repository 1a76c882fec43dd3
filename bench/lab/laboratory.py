"""One model, some texts, any number of schemes: everything is measured here once.

Owns the working tensors and the exact runs; knows no presets and no report.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bench.lab.attention import watch
from bench.lab.context import NUM_CONTEXT, NUM_PROBE, compute_exact, read_text
from bench.lab.cursors import count_same, exact_cursors
from bench.lab.measure import Summary, summarise, take_reading
from codekv.engine.reuse.kv_transfer import slice_planes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.lab.context import Exact, Text
    from bench.lab.corpus import LabText
    from bench.lab.cursors import LabCursor
    from bench.lab.scheme import Scheme
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.codec import ClassCodec
    from codekv.storage.encoded import EncodedBlock
    from codekv.tokens.tokenizer import Tokenizer

_SPEED_RUNS = 5
"""The best of a few: other programs only ever make a run slower."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured; smaller is quicker and rougher."""

    num_texts: int = 8
    num_context: int = NUM_CONTEXT
    num_probe: int = NUM_PROBE
    num_cursors: int = 200


class Laboratory:
    """Measures schemes on one model; used from one thread."""

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: Tokenizer,
        samples: Sequence[LabText],
        size: Size,
        tell: Callable[[str], None],
    ) -> None:
        """Read the texts; the model runs when something is first asked.

        Args:
            runtime: In float32, so that its own noise hides nothing.
            tokenizer: Of the same model.
            samples: At least as many as `size` asks for; surplus is left out.
            size: How much to measure.
            tell: Told a line when something takes long.
        """
        self.runtime = runtime
        self._tokenizer = tokenizer
        self._size = size
        self._tell = tell
        self.texts = [
            read_text(tokenizer, sample, size.num_context, size.num_probe)
            for sample in samples[: size.num_texts]
        ]
        self._kv = runtime.new_kv(size.num_context + size.num_probe + 64)

    @cached_property
    def cases(self) -> list[tuple[Text, Exact]]:
        """Texts with the exact model's runs; about 130 MB each for a small model."""
        cases = []
        for text in self.texts:
            self._tell(f"exact run over {text.name}")
            cases.append((text, compute_exact(self.runtime, self._kv, text)))
        return cases

    @cached_property
    def attention(self) -> tuple[dict[str, list[float]], dict[str, list[list[float]]]]:
        """Per text: attention per token, and per layer and head the far share."""
        mass, far = {}, {}
        for text in self.texts:
            self._tell(f"attention over {text.name}")
            mass[text.name], far[text.name] = watch(self.runtime, self._kv, text)
        return mass, far

    def measure(self, scheme: Scheme) -> Summary:
        """Divergence of one scheme over all texts."""
        self._tell(f"divergence of {scheme.name}")
        readings = [
            take_reading(self.runtime, self._kv, case, scheme) for case in self.cases
        ]
        return summarise(self.runtime, scheme.name, readings)

    @cached_property
    def cursors(self) -> dict[str, list[LabCursor]]:
        """Per text: random places and the exact model's greedy text there."""
        each = -(-self._size.num_cursors // len(self.texts))
        found = {}
        for case in self.cases:
            self._tell(f"greedy text at {each} places in {case[0].name}")
            found[case[0].name] = exact_cursors(
                self.runtime, self._kv, case, self._ends_line, each
            )
        return found

    def same_text(self, scheme: Scheme) -> tuple[float, float]:
        """Share of cursors whose greedy text, and whose line, stay the same."""
        whole = lines = total = 0
        for case in self.cases:
            cursors = self.cursors[case[0].name]
            self._tell(f"greedy text after {scheme.name} in {case[0].name}")
            counted = count_same(self.runtime, self._kv, case, scheme, cursors)
            whole, lines = whole + counted[0], lines + counted[1]
            total += len(cursors)
        return whole / total, lines / total

    def blocks(self, codec: ClassCodec) -> list[EncodedBlock]:
        """Every block of every text, encoded."""
        return [
            codec.encode(
                slice_planes(exact.planes, start, stop), text.classes[start:stop]
            )
            for text, exact in self.cases
            for start, stop in text.blocks
        ]

    def speed(self, codec: ClassCodec) -> tuple[float, float]:
        """Tokens per second of encoding and decoding one text's blocks, best run."""
        text, exact = self.cases[0]
        parts = [
            (slice_planes(exact.planes, start, stop), text.classes[start:stop])
            for start, stop in text.blocks
        ]
        encode_s = decode_s = float("inf")
        for _ in range(_SPEED_RUNS):
            begin = time.perf_counter()
            encoded = [codec.encode(planes, classes) for planes, classes in parts]
            middle = time.perf_counter()
            for block in encoded:
                codec.decode(block)
            end = time.perf_counter()
            encode_s, decode_s = (
                min(encode_s, middle - begin),
                min(decode_s, end - middle),
            )
        return text.num_context / encode_s, text.num_context / decode_s

    def _ends_line(self, token: int) -> bool:
        return b"\n" in self._tokenizer.token_bytes(token)
