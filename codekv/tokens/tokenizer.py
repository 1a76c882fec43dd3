"""Text to token ids and back, in bytes.

A thin face over the `tokenizers` library: the model's own `tokenizer.json`, no
transformers import. Every offset is a byte offset; every token has bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE

from codekv.errors import ModelFormatError
from codekv.tokens.alphabet import Alphabet, bytes_of_piece
from codekv.tokens.cuts import find_cuts
from codekv.tokens.fim import Fim as Fim
from codekv.tokens.fim import find_fim

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codekv.config import FimMarkers


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids of a text and the byte offset at which each token ends.

    Tokens tile the text: token i covers bytes [ends[i - 1], ends[i]). A character
    whose bytes fall into several tokens gives tokens that end inside it.
    """

    ids: tuple[int, ...]
    ends: tuple[int, ...]


class Tokenizer(Protocol):
    """What the rest of the engine asks of a tokenizer; deterministic, thread-safe."""

    vocab_size: int
    fim: Fim | None
    bos_id: int | None
    special_ids: frozenset[int]
    """Ids that stand for no text; they are never offered to a user."""

    fingerprint: str

    def encode(self, data: bytes) -> Encoding:
        """Tokenise UTF-8 text; special-token texts in it are ordinary text."""

    def token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for; empty for special tokens."""

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Concatenate the bytes of tokens; may end inside a character."""


# A token added after training that looks like this steers the model; any other (runs
# of spaces in some vocabularies) is text.
_MARKER = re.compile(r"^(<.+>|\[[A-Z_]+\]|</?s>|▁<.+>)$", re.DOTALL)

_BPE_OPTIONS = (
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
)
_EMPTY_MODEL = {"type": "BPE", "vocab": {}, "merges": []}

_STAND_IN = ord("?")

_PIECE = 1 << 13
"""Bytes per piece of a long text: small enough for the processor's cache."""

_SELF_CHECK = "def f(x):\n\treturn 'é 世界 🙂'  # 1234?\r\n\n    e\u0301 <s> "


class JsonTokenizer:
    """A `Tokenizer` over one `tokenizer.json`; made by `load_tokenizer`."""

    def __init__(
        self,
        backend: Backend,
        pieces: list[bytes],
        alphabet: Alphabet,
        fim: Fim | None,
        bos_id: int | None,
        fingerprint: str,
    ) -> None:
        self.vocab_size = len(pieces)
        self.fim = fim
        self.bos_id = bos_id
        self.special_ids = frozenset(i for i, piece in enumerate(pieces) if not piece)
        self.fingerprint = fingerprint
        self._backend = backend
        self._pieces = pieces
        self._lengths = [len(piece) for piece in pieces]
        self._byte_ids = {p[0]: i for i, p in enumerate(pieces) if len(p) == 1}
        # A table of the vocabulary's bytes; None if it has them all, as most do.
        table = bytes(b if b in self._byte_ids else _STAND_IN for b in range(256))
        self._table = None if table == bytes(range(256)) else table
        self._mark = alphabet.reserved()
        self.cuts = find_cuts(self._encode_text, pieces)

    def as_seen(self, data: bytes) -> bytes:
        """The text as the model sees it, byte for byte.

        Some vocabularies lack rare bytes (control characters, unused planes); those
        are shown as question marks, so that offsets stay true. So is the character
        that SentencePiece writes for a space.
        """
        if self._mark:
            data = data.replace(self._mark, b"?" * len(self._mark))
        return data.translate(self._table) if self._table else data

    def encode(self, data: bytes) -> Encoding:
        """Tokenise UTF-8 text; special-token texts in it are ordinary text.

        Bytes that are not UTF-8 become one token each.
        A long text is encoded in pieces, which is faster and gives the same tokens.
        """
        if len(data) < _PIECE:
            return self.encode_whole(data)
        try:
            pieces = self.cuts.pieces(self.as_seen(data), _PIECE)
            texts = [piece.decode() for piece in pieces]
        except UnicodeDecodeError:
            return self.encode_whole(data)
        batch = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return self._encoding([token for part in batch for token in part.ids])

    def encode_whole(self, data: bytes) -> Encoding:
        """Like `encode`, always in one go."""
        ids: list[int] = []
        data = self.as_seen(data)
        while data:
            try:
                ids += self._encode_text(data.decode("utf-8"))
                break
            except UnicodeDecodeError as error:
                ids += self._encode_text(data[: error.start].decode("utf-8"))
                bad = data[error.start : error.end]
                ids += [self._byte_ids[b] for b in bad]
                data = data[error.end :]
        return self._encoding(ids)

    def token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for; empty for special tokens."""
        return self._pieces[token] if 0 <= token < len(self._pieces) else b""

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Concatenate the bytes of tokens; may end inside a character."""
        return b"".join(map(self.token_bytes, tokens))

    def _encode_text(self, text: str) -> list[int]:
        if not text:
            return []
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def _encoding(self, ids: list[int]) -> Encoding:
        lengths = self._lengths
        return Encoding(tuple(ids), tuple(accumulate(lengths[i] for i in ids)))


def load_tokenizer(folder: Path, fim: FimMarkers | None = None) -> JsonTokenizer:
    """Load `tokenizer.json` of a model folder.

    Args:
        folder: Holds `tokenizer.json` and, if there is one, `config.json`.
        fim: Marker texts that replace those of the family table.

    Raises:
        ModelFormatError: The file is missing, damaged, or a kind that cannot be
            used byte by byte.
    """
    path = folder / "tokenizer.json"
    raw = _read(path)
    try:
        spec = json.loads(raw)
        config = _config(folder)
        backend, alphabet = _backend(spec)
        pieces = _pieces(spec, alphabet, int(config.get("vocab_size") or 0))
        names = spec["model"]["vocab"] | {a["content"]: a["id"] for a in _added(spec)}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        line = " ".join(str(error).split())[:200]
        message = f"{path} is not a tokenizer this program can use ({line})"
        raise ModelFormatError(message) from error
    bos = config.get("bos_token_id") if config.get("add_bos_token") else None
    loaded = JsonTokenizer(
        backend,
        pieces,
        alphabet,
        find_fim(names, fim),
        bos if isinstance(bos, int) else None,
        hashlib.sha256(raw).hexdigest(),
    )
    _check(loaded, path)
    return loaded


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        line = f"{path} cannot be read ({error.strerror}); pull or add the model again"
        raise ModelFormatError(line) from error


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    values = json.loads(path.read_bytes()) if path.is_file() else {}
    return values if isinstance(values, dict) else {}


def _added(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return list(spec.get("added_tokens") or [])


def _is_marker(added: dict[str, Any]) -> bool:
    return bool(added.get("special")) or bool(_MARKER.match(added["content"]))


def _backend(spec: dict[str, Any]) -> tuple[Backend, Alphabet]:
    """Build the library's tokenizer without what would change or swallow text.

    Unicode normalisation and a space put before the text are left out, so that tokens
    tile the user's bytes; markers are left out, so that their names are text.
    """
    alphabet = Alphabet.of(spec)
    plain = dict(spec)
    plain["added_tokens"] = [a for a in _added(spec) if not _is_marker(a)]
    plain["normalizer"] = alphabet.normalizer()
    plain["pre_tokenizer"] = alphabet.pre_tokenizer(spec.get("pre_tokenizer"))
    plain["post_processor"] = plain["truncation"] = plain["padding"] = None
    try:
        return _assemble(plain), alphabet
    except Exception as error:  # the library raises bare Exception
        raise ValueError(str(error)) from error


def _assemble(spec: dict[str, Any]) -> Backend:
    """Hand the vocabulary over without writing it as JSON again: twice as fast."""
    if spec["model"].get("type", "BPE") != "BPE" or spec["added_tokens"]:
        return Backend.from_str(json.dumps(spec))
    model = spec["model"]
    bpe = BPE(
        vocab=model["vocab"],
        merges=[_pair(merge) for merge in model["merges"]],
        **{key: model[key] for key in _BPE_OPTIONS if model.get(key) is not None},
    )
    backend = Backend.from_str(json.dumps(spec | {"model": _EMPTY_MODEL}))
    backend.model = bpe
    return backend


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
    return left, right


def _pieces(spec: dict[str, Any], alphabet: Alphabet, num_rows: int) -> list[bytes]:
    """Bytes by id; empty where an id is a marker or is not used at all."""
    vocab: dict[str, int] = spec["model"]["vocab"]
    added = _added(spec)
    size = max([num_rows - 1, *vocab.values(), *(a["id"] for a in added)]) + 1
    pieces = [b""] * size
    for piece, token in vocab.items():
        pieces[token] = bytes_of_piece(piece, alphabet)
    unknown = spec["model"].get("unk_token")
    if unknown in vocab:
        pieces[vocab[unknown]] = b""
    for entry in added:
        text = b"" if _is_marker(entry) else entry["content"].encode()
        pieces[entry["id"]] = text
    return pieces


def _check(tokenizer: JsonTokenizer, path: Path) -> None:
    """Refuse a tokenizer that loses bytes: every offset would be wrong."""
    data = _SELF_CHECK.encode()
    if tokenizer.decode(tokenizer.encode(data).ids) != data:
        line = f"{path} does not keep text byte by byte; this model cannot be used"
        raise ModelFormatError(line)
