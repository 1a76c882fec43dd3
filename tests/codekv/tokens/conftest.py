import json
from pathlib import Path

import pytest

import codekv.tokens.buffer
from codekv.errors import ModelError
from codekv.model.library.store import open_model
from codekv.testing.models import train_byte_level, train_sentence_piece
from codekv.tokens.tokenizer import JsonTokenizer, load_tokenizer

TRAINED = ("qwen2", "smollm", "llama-bpe", "gpt-2", "deepseek-coder", "sentence-piece")
REAL = ("qwen2.5-coder-0.5b", "smollm2-135m")


@pytest.fixture(scope="session")
def source_text() -> str:
    return Path(codekv.tokens.buffer.__file__).read_text("utf-8")


@pytest.fixture(scope="session")
def trained(tmp_path_factory, source_text):
    """Trains each tokenizer once: `trained(name)`."""
    made: dict[str, JsonTokenizer] = {}

    def get(name: str) -> JsonTokenizer:
        if name not in made:
            texts = [
                source_text,
                "héllo wörld 世界 🙂\n    if x == 12345:\n\t\treturn\n",
            ]
            spec = (
                train_sentence_piece(texts)
                if name == "sentence-piece"
                else train_byte_level(texts, name)
            )
            folder = tmp_path_factory.mktemp(name)
            (folder / "tokenizer.json").write_text(json.dumps(spec), "utf-8")
            made[name] = load_tokenizer(folder)
        return made[name]

    return get


@pytest.fixture(scope="session")
def real():
    """Loads a real model's tokenizer once: `real(name)`."""
    made: dict[str, JsonTokenizer] = {}

    def get(name: str) -> JsonTokenizer:
        if name not in made:
            try:
                made[name] = load_tokenizer(open_model(name).folder)
            except ModelError:
                if name == REAL[0]:  # the default must be here
                    raise
                pytest.skip(f"{name} is not here")
        return made[name]

    return get


@pytest.fixture(
    scope="session",
    params=[
        *TRAINED,
        *(pytest.param(name, marks=pytest.mark.model) for name in REAL),
    ],
)
def tokenizer(request, trained, real) -> JsonTokenizer:
    return (real if request.param in REAL else trained)(request.param)
