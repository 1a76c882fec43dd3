import json

import pytest

from codekv.errors import ModelFormatError
from codekv.model.library.gguf_vocab import SPLITTERS, tokenizer_json
from codekv.testing.models import train_byte_level
from codekv.tokens.tokenizer import load_tokenizer

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


def load(folder, fields):
    content = tokenizer_json(fields, "x.gguf")
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    return load_tokenizer(folder)


def byte_level(splitter, **more):
    spec = train_byte_level(["def f(x):\n    return x\n"], "gpt-2", 320)
    vocab = spec["model"]["vocab"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": splitter,
        "tokenizer.ggml.tokens": sorted(vocab, key=vocab.__getitem__),
        "tokenizer.ggml.token_type": [CONTROL] * 4 + [NORMAL] * (len(vocab) - 4),
        "tokenizer.ggml.merges": [" ".join(m) for m in spec["model"]["merges"]],
        **more,
    }


def sentence_piece():
    """As Llama 2 has it: bytes first, then pieces by falling score."""
    pieces = [
        "▁a",
        "▁b",
        "ab",
        "▁ab",
        "fo",
        "foo",
        "▁foo",
        "(",
        ")",
        "a",
        "b",
        "f",
        "o",
    ]
    pieces += ["▁", "<", "s", ">", "<s", "s>", "\n", "▁▁"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *pieces]
    kinds = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces)
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(pieces))]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.unknown_token_id": 0,
    }


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_every_known_splitter_loads_and_keeps_bytes(tmp_path, splitter):
    tokenizer = load(tmp_path, byte_level(splitter))
    data = b"def f(x):\n    return 'x' + 12\n"
    assert tokenizer.decode(tokenizer.encode(data).ids) == data
    assert tokenizer.special_ids == frozenset(range(4))


def test_a_file_that_names_no_splitter_is_taken_for_the_first_one(tmp_path):
    fields = byte_level("gpt-2")
    del fields["tokenizer.ggml.pre"]
    assert load(tmp_path, fields).encode(b"def f").ids


def test_an_unknown_splitter_is_refused_rather_than_guessed():
    with pytest.raises(ModelFormatError, match="text splitting 'new' is not supported"):
        tokenizer_json(byte_level("new"), "x.gguf")


def test_an_unknown_kind_of_tokenizer_is_refused():
    with pytest.raises(ModelFormatError, match="tokenizer kind 'bert'"):
        tokenizer_json({"tokenizer.ggml.model": "bert"}, "x.gguf")


def test_padding_rows_are_special(tmp_path):
    fields = byte_level("qwen2")
    fields["tokenizer.ggml.tokens"] += ["[PAD1]", "[PAD1]"]
    fields["tokenizer.ggml.token_type"] += [UNUSED, UNUSED]
    fields["tokenizer.ggml.tokens"] += ["<|extra|>"]
    fields["tokenizer.ggml.token_type"] += [CONTROL]
    tokenizer = load(tmp_path, fields)
    last = tokenizer.vocab_size - 1
    assert {last, last - 1, last - 2} <= tokenizer.special_ids


def test_pieces_are_joined_in_the_order_of_their_scores(tmp_path):
    tokenizer = load(tmp_path, sentence_piece())
    data = b"foo ab(a  b)\n\xc3\xa9"
    pieces = [tokenizer.token_bytes(t) for t in tokenizer.encode(data).ids]
    assert b"".join(pieces) == data
    # "▁a" outranks "ab", and "▁ab" is reached from there.
    assert pieces[:2] == [b"foo", b" ab"]
    assert pieces[-2:] == [b"\xc3", b"\xa9"]


def test_the_name_of_a_marker_is_never_merged_into_the_marker(tmp_path):
    tokenizer = load(tmp_path, sentence_piece())
    encoding = tokenizer.encode(b"<s> <0x0A>")
    assert not tokenizer.special_ids.intersection(encoding.ids)
    assert tokenizer.decode(encoding.ids) == b"<s> <0x0A>"
