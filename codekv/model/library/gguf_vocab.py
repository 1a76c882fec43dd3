"""The tokenizer inside a GGUF file, written as a `tokenizer.json`.

The file stores the vocabulary and the merges but only names the rule that splits text
into words; the rules are here. A name not in the table is refused: a wrong rule gives
tokens the model has never seen, and nobody would notice.
"""

from __future__ import annotations

from typing import Any

from codekv.errors import ModelFormatError

# Token types as the GGUF format numbers them.
_NORMAL, _CONTROL, _USER, _UNUSED = 1, 3, 4, 5

_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def _split(pattern: str) -> dict[str, Any]:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


def _byte_level(*, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": use_regex,
    }


_DIGITS = {"type": "Digits", "individual_digits": True}

_GPT2 = [_byte_level(use_regex=True)]
_ONE_DIGIT = [_split(_WORDS + r"|\p{N}" + _REST), _byte_level(use_regex=False)]
_THREE_DIGITS = [_split(_WORDS + r"|\p{N}{1,3}" + _REST), _byte_level(use_regex=False)]
_STARCODER = [_DIGITS, _byte_level(use_regex=True)]
_DEEPSEEK_CODER = [
    _split(r"[\r\n]"),
    _split(r"\s?\p{L}+"),
    _split(r"\s?\p{P}+"),
    _split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
    _DIGITS,
    _byte_level(use_regex=False),
]

SPLITTERS: dict[str, list[dict[str, Any]]] = {
    "default": _GPT2,
    "gpt-2": _GPT2,
    "qwen2": _ONE_DIGIT,
    "llama-bpe": _THREE_DIGITS,
    "llama3": _THREE_DIGITS,
    "smollm": _STARCODER,
    "starcoder": _STARCODER,
    "refact": _STARCODER,
    "deepseek-coder": _DEEPSEEK_CODER,
}


def tokenizer_json(fields: dict[str, Any], path: str) -> dict[str, Any]:
    """Build the content of `tokenizer.json` from a GGUF file's metadata.

    Args:
        fields: Metadata by key, with plain Python values.
        path: Of the file, for messages.

    Raises:
        ModelFormatError: The tokenizer is of a kind not known here.
    """
    kind = fields.get("tokenizer.ggml.model")
    if kind == "gpt2":
        return _byte_level_json(fields, path)
    if kind == "llama":
        return _sentence_piece_json(fields)
    line = f"{path}: tokenizer kind {kind!r} is not supported"
    raise ModelFormatError(f"{line}; add the model's original folder instead")


def _byte_level_json(fields: dict[str, Any], path: str) -> dict[str, Any]:
    name = str(fields.get("tokenizer.ggml.pre") or "default")
    if name not in SPLITTERS:
        line = f"{path}: text splitting {name!r} is not supported"
        raise ModelFormatError(f"{line}; add the model's original folder instead")
    merges = [merge.split(" ", 1) for merge in fields["tokenizer.ggml.merges"]]
    model = {
        "type": "BPE",
        "vocab": _vocab(fields),
        "merges": merges,
        "ignore_merges": name in ("llama-bpe", "llama3"),
    }
    return {
        "version": "1.0",
        "added_tokens": _added_tokens(fields),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": SPLITTERS[name]},
        "decoder": _byte_level(use_regex=True),
        "model": model,
    }


def _sentence_piece_json(fields: dict[str, Any]) -> dict[str, Any]:
    vocab = _vocab(fields)
    unknown = fields.get("tokenizer.ggml.unknown_token_id", 0)
    model = {
        "type": "BPE",
        "vocab": vocab,
        "merges": _merges_by_score(_mergeable(fields), fields["tokenizer.ggml.scores"]),
        "unk_token": fields["tokenizer.ggml.tokens"][unknown],
        "fuse_unk": True,
        "byte_fallback": True,
    }
    return {
        "version": "1.0",
        "added_tokens": _added_tokens(fields),
        "normalizer": None,
        "pre_tokenizer": None,
        "decoder": None,
        "model": model,
    }


def _vocab(fields: dict[str, Any]) -> dict[str, int]:
    """Every entry that text can become; padding rows have no name of their own."""
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    vocab: dict[str, int] = {}
    for token, (piece, kind) in enumerate(zip(tokens, kinds, strict=True)):
        if kind != _UNUSED:
            vocab.setdefault(piece, token)
    return vocab


def _added_tokens(fields: dict[str, Any]) -> list[dict[str, Any]]:
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    return [
        {
            "id": token,
            "content": piece,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == _CONTROL,
        }
        for token, (piece, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (_CONTROL, _USER)
    ]


def _mergeable(fields: dict[str, Any]) -> dict[str, int]:
    """Entries that text is merged into; markers and bytes are not."""
    kinds = fields["tokenizer.ggml.token_type"]
    return {
        piece: token
        for piece, token in _vocab(fields).items()
        if kinds[token] in (_NORMAL, _USER)
    }


def _merges_by_score(vocab: dict[str, int], scores: list[float]) -> list[list[str]]:
    """All ways to build each entry from two others, the likeliest entry first."""
    found: list[tuple[float, int, int, list[str]]] = []
    for piece, token in vocab.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocab and right in vocab:
                rank = (-scores[token], vocab[left], vocab[right])
                found.append((*rank, [left, right]))
    found.sort(key=lambda entry: entry[:3])
    return [entry[3] for entry in found]
