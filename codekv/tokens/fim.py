"""Markers per model family, as data: of a hole in a text, and of a file's name.

A family is recognised by its vocabulary alone: the first row whose three markers are
all there. A model without such tokens completes from left to right. A family that was
trained with the names of files has markers for them, too (`FILE_MARKERS`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.config import FimMarkers
from codekv.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class NameMarkers:
    """How a family's training texts say which file they are of.

    Attributes:
        repository: Id of the token before the project's name.
        file: Id of the token before the file's path.
        is_inside: The path stands behind the prefix marker, not before it.
    """

    repository: int
    file: int
    is_inside: bool = False


@dataclass(frozen=True, slots=True)
class Fim:
    """Ids of the fill-in-the-middle markers, and what ends a middle.

    Attributes:
        names: The markers of file names; None if the family is not known to have any.
    """

    prefix: int
    suffix: int
    middle: int
    stop: tuple[int, ...]
    names: NameMarkers | None = None


FAMILIES: dict[str, FimMarkers] = {
    # Qwen2.5-Coder technical report, 2024; Qwen3 and later keep the tokens.
    "qwen2.5-coder": FimMarkers(
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        stop=(
            "<|endoftext|>",
            "<|fim_pad|>",
            "<|repo_name|>",
            "<|file_sep|>",
            "<|im_end|>",
            "<|im_start|>",
        ),
    ),
    # StarCoder, StarCoder2, Granite code models.
    "starcoder": FimMarkers(
        prefix="<fim_prefix>",
        suffix="<fim_suffix>",
        middle="<fim_middle>",
        stop=("<|endoftext|>", "<fim_pad>", "<file_sep>", "<filename>"),
    ),
    # SantaCoder: the same names with hyphens.
    "santacoder": FimMarkers(
        prefix="<fim-prefix>",
        suffix="<fim-suffix>",
        middle="<fim-middle>",
        stop=("<|endoftext|>", "<fim-pad>"),
    ),
    # DeepSeek-Coder: the hole's own marker stands where the suffix begins.
    "deepseek-coder": FimMarkers(
        prefix="<\uff5cfim\u2581begin\uff5c>",
        suffix="<\uff5cfim\u2581hole\uff5c>",
        middle="<\uff5cfim\u2581end\uff5c>",
        stop=("<\uff5cend\u2581of\u2581sentence\uff5c>", "<|EOT|>"),
    ),
    # CodeGemma.
    "codegemma": FimMarkers(
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        stop=("<eos>", "<|file_separator|>", "<end_of_turn>"),
    ),
    # Code Llama 7B and 13B.
    "codellama": FimMarkers(
        prefix="\u2581<PRE>",
        suffix="\u2581<SUF>",
        middle="\u2581<MID>",
        stop=("\u2581<EOT>", "</s>"),
    ),
}


FILE_MARKERS: tuple[tuple[str, str, bool], ...] = (
    # Qwen2.5-Coder technical report, 2024, section 3: the whole file, hole included,
    # follows its name. CodeGemma has neither token.
    ("<|repo_name|>", "<|file_sep|>", False),
    # StarCoder 2 and The Stack v2, 2024, section 5: the hole is dug into a text that
    # begins with its path. StarCoder and SantaCoder name files in other ways, which
    # nobody has tried here: they get a comment.
    ("<repo_name>", "<file_sep>", True),
)
"""The repository's marker, the file's, and whether the path is part of the prefix."""


def find_fim(names: Mapping[str, int], override: FimMarkers | None) -> Fim | None:
    """The ids of the markers, or None where the vocabulary has none.

    Args:
        names: Every entry of the vocabulary, markers included, to its id.
        override: Marker texts from the configuration; they replace the table.

    Raises:
        ConfigError: The override names a token that the vocabulary does not have.
    """
    if override is not None:
        for text in (override.prefix, override.suffix, override.middle):
            if text not in names:
                line = f"model.fim: the model has no token {text!r}; remove or mend it"
                raise ConfigError(line)
        return _ids(names, override)
    fitting = [
        row
        for row in FAMILIES.values()
        if all(text in names for text in (row.prefix, row.suffix, row.middle))
    ]
    if not fitting:
        return None
    # Two families share the names of the markers; what ends a text tells them apart.
    best = max(fitting, key=lambda row: sum(text in names for text in row.stop))
    return _ids(names, best)


def _ids(names: Mapping[str, int], markers: FimMarkers) -> Fim:
    stop = {names[text] for text in markers.stop if text in names}
    prefix, suffix, middle = (
        names[text] for text in (markers.prefix, markers.suffix, markers.middle)
    )
    stop |= {prefix, suffix, middle}
    return Fim(prefix, suffix, middle, tuple(sorted(stop)), _name_markers(names))


def _name_markers(names: Mapping[str, int]) -> NameMarkers | None:
    for repository, file, is_inside in FILE_MARKERS:
        if repository in names and file in names:
            return NameMarkers(names[repository], names[file], is_inside)
    return None
