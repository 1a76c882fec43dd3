import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codekv.config import FimMarkers
from codekv.errors import ConfigError, ModelFormatError
from codekv.testing.models import MARKERS, train_byte_level
from codekv.tokens.tokenizer import load_tokenizer

SHARED = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
PIECES = st.sampled_from(
    [
        "def ",
        "return",
        "self.x",
        "(",
        "):",
        "\n",
        "\n\n",
        "    ",
        "\t",
        "  \n",
        "'s",
        "don't",
        '"""',
        "# ",
        "12",
        "3.14",
        "0x1F",
        "é",
        "e\u0301",
        "世界",
        "\u3000",
        "\u00a0",
        "🙂",
        "👩‍👩‍👧",
        "ß",
        "ﬁ",
        "½",
        "<|endoftext|>",
        "<s>",
        "<0x0A>",
        "▁",
        "Ġ",
        "\x00",
        "\x7f",
        "\u200d",
        "\ufeff",
        "\r",
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=40))


@SHARED
@given(text=TEXTS)
def test_tokens_tile_the_text_byte_by_byte(tokenizer, text):
    data = tokenizer.as_seen(text.encode())
    encoding = tokenizer.encode(text.encode())
    assert tokenizer.decode(encoding.ids) == data
    start = 0
    for token, end in zip(encoding.ids, encoding.ends, strict=True):
        assert tokenizer.token_bytes(token) == data[start:end] != b""
        start = end
    assert start == len(data)


@SHARED
@given(text=TEXTS)
def test_text_never_becomes_a_special_token(tokenizer, text):
    assert not tokenizer.special_ids.intersection(tokenizer.encode(text.encode()).ids)


def test_names_of_markers_in_the_text_are_text(trained):
    tokenizer = trained("qwen2")
    data = "".join(MARKERS).encode()
    assert tokenizer.decode(tokenizer.encode(data).ids) == data
    assert len(tokenizer.special_ids) == len(MARKERS)


def test_bytes_that_are_not_utf8_are_kept(tokenizer):
    data = b"x = '\xff\xfe' \xe4\xb8 y\xc3"
    assert tokenizer.decode(tokenizer.encode(data).ids) == tokenizer.as_seen(data)


def test_bytes_that_the_vocabulary_lacks_keep_their_place(tmp_path, spec):
    vocab = {k: v for k, v in spec["model"]["vocab"].items() if k != "\u0104"}
    lacking = spec | {"model": spec["model"] | {"vocab": vocab, "merges": []}}
    tokenizer = load_tokenizer(write(tmp_path, lacking))
    encoding = tokenizer.encode(b"a\x04b")
    assert tokenizer.as_seen(b"a\x04b") == b"a?b" == tokenizer.decode(encoding.ids)
    assert encoding.ends == (1, 2, 3)


def test_empty_text_has_no_tokens(tokenizer):
    assert tokenizer.encode(b"").ids == ()


def test_a_long_text_in_pieces_gives_the_tokens_of_the_whole(tokenizer, source_text):
    texts = (
        source_text * 9,
        "x" * 30_000,
        " " * 30_000,
        "7" * 30_000,
        "世界" * 9_000,
        "a, " * 9_000,
        (source_text + "é 世界 12345\n\n\n  \n\t") * 5,
    )
    for text in texts:
        data = text.encode()
        assert tokenizer.encode(data) == tokenizer.encode_whole(data)


def test_a_run_of_100000_characters_is_encoded_whole(tokenizer):
    for character in "a \n-1\t":
        data = character.encode() * 100_000
        assert tokenizer.encode(data).ends[-1] == len(data)


@pytest.mark.model
def test_the_default_model_splits_as_its_authors_do(real):
    tokenizer = real("qwen2.5-coder-0.5b")
    data = b"def add(a, b):\n    return a + 12\n\n\nx"
    pieces = [tokenizer.token_bytes(t) for t in tokenizer.encode(data).ids]
    assert pieces == [
        *(b"def", b" add", b"(a", b",", b" b", b"):\n", b"   ", b" return", b" a"),
        *(b" +", b" ", b"1", b"2", b"\n\n\n", b"x"),
    ]
    assert tokenizer.fim is not None
    assert (tokenizer.fim.prefix, tokenizer.fim.middle, tokenizer.fim.suffix) == (
        *(151659, 151660, 151661),
    )


def write(folder, spec):
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(spec), "utf-8")
    return folder


@pytest.fixture(scope="module")
def spec():
    return train_byte_level(["def f(x): return x"], "qwen2", 300)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ModelFormatError, match=r"tokenizer\.json cannot be read"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'{"model": {"vocab": {}}}', b"\xff", b'{"model": 3}'],
)
def test_a_damaged_file_is_one_line(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ModelFormatError, match="not a tokenizer") as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_vocabulary_that_loses_bytes_is_refused(tmp_path, spec):
    vocab = {k: v for k, v in spec["model"]["vocab"].items() if k != "Ã"}
    broken = spec | {"model": spec["model"] | {"vocab": vocab, "merges": []}}
    with pytest.raises(ModelFormatError, match="byte by byte"):
        load_tokenizer(write(tmp_path, broken))


def test_a_normaliser_is_left_out_so_that_bytes_are_kept(tmp_path, spec):
    folder = write(tmp_path, spec | {"normalizer": {"type": "NFC"}})
    tokenizer = load_tokenizer(folder)
    data = "e\u0301".encode()
    assert tokenizer.decode(tokenizer.encode(data).ids) == data


def test_rows_beyond_the_vocabulary_are_special(tmp_path, spec):
    folder = write(tmp_path, spec)
    (folder / "config.json").write_text('{"vocab_size": 512}')
    tokenizer = load_tokenizer(folder)
    assert tokenizer.vocab_size == 512
    assert 511 in tokenizer.special_ids
    assert tokenizer.token_bytes(511) == b""


def test_an_added_token_that_is_text_stays_text(tmp_path, spec):
    size = len(spec["model"]["vocab"])
    run = {
        "id": size,
        "content": " " * 8,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": False,
    }
    added = [*spec["added_tokens"], run]
    tokenizer = load_tokenizer(write(tmp_path, spec | {"added_tokens": added}))
    data = b"x" + b" " * 20 + b"y"
    encoding = tokenizer.encode(data)
    assert tokenizer.decode(encoding.ids) == data
    assert size in encoding.ids


def test_the_first_token_is_told_only_where_the_model_wants_one(tmp_path, spec):
    folder = write(tmp_path, spec)
    (folder / "config.json").write_text('{"bos_token_id": 1, "add_bos_token": true}')
    assert load_tokenizer(folder).bos_id == 1
    (folder / "config.json").write_text('{"bos_token_id": 1}')
    assert load_tokenizer(folder).bos_id is None


def test_markers_from_the_configuration_replace_the_table(tmp_path, spec):
    folder = write(tmp_path, spec)
    names = MARKERS
    markers = FimMarkers(prefix=names[3], suffix=names[1], middle=names[2])
    fim = load_tokenizer(folder, markers).fim
    assert fim is not None
    assert (fim.prefix, fim.suffix, fim.middle) == (3, 1, 2)
    unknown = FimMarkers(prefix="<PRE>", suffix=names[1], middle=names[2])
    with pytest.raises(ConfigError, match=r"model\.fim: .*<PRE>"):
        load_tokenizer(folder, unknown)


def test_the_fingerprint_follows_the_content(tmp_path, spec):
    one = load_tokenizer(write(tmp_path / "a", spec))
    same = load_tokenizer(write(tmp_path / "b", spec))
    other = load_tokenizer(write(tmp_path / "c", spec | {"added_tokens": []}))
    assert one.fingerprint == same.fingerprint != other.fingerprint
