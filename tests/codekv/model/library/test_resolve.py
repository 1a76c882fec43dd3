import json
import shutil

import pytest

from codekv.config import ModelConfig
from codekv.errors import (
    DownloadError,
    ModelFormatError,
    ModelNotFoundError,
    UsageError,
)
from codekv.model.library import catalog, hub, resolve, store
from codekv.model.library.download import Sources
from codekv.model.library.package_index import Indexes
from codekv.model.runtime.half import half_weights
from codekv.testing.models import write_tiny_gguf

NOWHERE = Sources(None, Indexes(("http://127.0.0.1:9/simple/",)))


@pytest.fixture
def small(home, tiny_gguf):
    return store.import_gguf(tiny_gguf, catalog.SMALL.name, "a test", None)


def test_a_stored_model_is_found_without_the_network(home, tiny_gguf):
    stored = store.import_gguf(tiny_gguf, "mine", "a test", None)
    found = resolve.resolve_model(ModelConfig(name="mine"), pull=False)
    assert (found.folder, found.name, found.notice) == (stored.folder, "mine", None)


def test_an_alias_finds_the_catalog_entry(home, tiny_gguf):
    store.import_gguf(tiny_gguf, catalog.DEFAULT.name, "a test", None)
    config = ModelConfig(name="Qwen2.5-Coder-0.5B-Instruct")
    assert resolve.resolve_model(config, pull=False).name == catalog.DEFAULT.name


def test_a_default_that_cannot_be_had_gives_way_to_the_small_one(small):
    found = resolve.resolve_model(ModelConfig(), pull=True, sources=NOWHERE)
    assert found.name == catalog.SMALL.name
    assert found.notice is not None
    assert "is used instead of qwen2.5-coder-0.5b" in found.notice
    assert found.notice.endswith("run: codekv model pull qwen2.5-coder-0.5b")
    assert "\n" not in found.notice


def test_the_small_model_stands_in_without_pulling_too(small):
    found = resolve.resolve_model(ModelConfig(), pull=False)
    assert found.name == catalog.SMALL.name
    assert found.notice is not None


def test_offline_never_asks_the_network(small, published):
    config = ModelConfig(offline=True)
    resolve.resolve_model(config, pull=True, sources=published.hub_and_index)
    assert published.site.asked == []


def test_the_small_model_is_pulled_when_it_must_stand_in(home, published, monkeypatch):
    entry = published.entry
    monkeypatch.setattr(catalog, "CATALOG", (catalog.DEFAULT, entry))
    monkeypatch.setattr(resolve, "SMALL", entry)
    found = resolve.resolve_model(
        ModelConfig(), pull=True, sources=published.only_index
    )
    assert found.name == "tiny"


def test_without_any_model_the_error_is_about_the_configured_one(home):
    with pytest.raises(ModelNotFoundError, match="pull qwen2.5-coder-0.5b"):
        resolve.resolve_model(ModelConfig(), pull=False)
    with pytest.raises(DownloadError, match="'qwen2.5-coder-0.5b' could not be"):
        resolve.resolve_model(ModelConfig(), pull=True, sources=NOWHERE)


def test_another_model_than_the_default_is_never_replaced(small):
    with pytest.raises(ModelNotFoundError, match="did you mean smollm2-135m"):
        resolve.resolve_model(ModelConfig(name="smollm-135"), pull=False)
    with pytest.raises(ModelNotFoundError, match="codekv model pull org/name"):
        resolve.resolve_model(ModelConfig(name="org/name"), pull=False)


@pytest.mark.parametrize(
    "name",
    ["", "no such model", "a/b/c", "../..", "x" * 500, "a\0b", "/x" * 5000, "/a\0b"],
)
def test_names_that_mean_nothing_are_one_line(small, name):
    with pytest.raises((ModelNotFoundError, ModelFormatError)) as caught:
        resolve.resolve_model(ModelConfig(name=name), pull=False)
    assert "\n" not in str(caught.value)


def test_a_local_gguf_is_converted_once_and_again_when_it_changes(home, tmp_path):
    path = tmp_path / "my model.gguf"
    write_tiny_gguf(path)
    config = ModelConfig(name=str(path))
    first = resolve.resolve_model(config, pull=False)
    assert first.name.startswith("my-model-")
    manifest = first.folder / "manifest.json"
    before = manifest.stat().st_mtime_ns
    assert resolve.resolve_model(config, pull=False) == first
    assert manifest.stat().st_mtime_ns == before
    write_tiny_gguf(path, seed=1)
    assert resolve.resolve_model(config, pull=False) == first
    assert manifest.stat().st_mtime_ns != before


def test_a_path_that_is_not_there_is_one_line(home, tmp_path):
    config = ModelConfig(name=str(tmp_path / "nothing.gguf"))
    with pytest.raises(ModelNotFoundError, match="there is no file or folder"):
        resolve.resolve_model(config, pull=False)


def test_a_folder_that_is_no_model_is_one_line(home, tmp_path):
    config = ModelConfig(name=str(tmp_path))
    with pytest.raises(ModelFormatError, match=r"config\.json is missing"):
        resolve.resolve_model(config, pull=False)


def test_a_file_that_cannot_be_read_is_one_line(home, tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"\x00" * 100)
    config = ModelConfig(name=str(tmp_path / "x.gguf"))
    with pytest.raises(ModelFormatError, match="is not a GGUF file"):
        resolve.resolve_model(config, pull=False)


def test_a_folder_with_one_gguf_is_that_file(home, tmp_path, tiny_gguf):
    shutil.copy(tiny_gguf, tmp_path / "x.gguf")
    assert resolve.add(tmp_path, "mine").name == "mine"


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "a b", "é"])
def test_a_name_that_cannot_be_a_folder_is_refused(home, tiny_gguf, name):
    with pytest.raises(UsageError, match="cannot be a model's name"):
        resolve.add(tiny_gguf, name)


def test_a_damaged_model_is_pulled_again_if_allowed(home, published, monkeypatch):
    monkeypatch.setattr(catalog, "CATALOG", (published.entry,))
    config = ModelConfig(name="tiny")
    first = resolve.resolve_model(config, pull=True, sources=published.only_index)
    (first.folder / "tokenizer.json").write_bytes(b"")
    with pytest.raises(ModelFormatError, match="pull tiny --again"):
        resolve.resolve_model(config, pull=False)
    again = resolve.resolve_model(config, pull=True, sources=published.only_index)
    assert again == first


def test_a_hub_id_is_fetched_and_converted(home, tiny_gguf, published, monkeypatch):
    def fetch_all(repo, local_dir, allow_patterns, endpoint):
        assert (repo, endpoint) == ("org/tiny", published.site.url)
        assert "*.bin" not in allow_patterns
        source = store.import_gguf(tiny_gguf, "source", "a test", None)
        local_dir.mkdir(parents=True)
        half_weights(source.folder)
        for name in ("config.json", "tokenizer.json", "weights.safetensors"):
            shutil.copy(source.folder / name, local_dir / name)

    published.site.files["/"] = b"hub"
    monkeypatch.setattr(hub.huggingface_hub, "snapshot_download", fetch_all)
    sources = Sources(f"{published.site.url}")
    stored = resolve.obtain("org/tiny", sources=sources)
    assert (stored.name, stored.source) == ("org--tiny", "hub org/tiny")
    assert json.loads((stored.folder / "config.json").read_bytes())["hidden_size"] == 64
    found = resolve.resolve_model(ModelConfig(name="org/tiny"), pull=False)
    assert found.folder == stored.folder
    assert resolve.obtain("org/tiny", sources=NOWHERE) == stored


def test_a_hub_id_with_a_file_is_that_gguf(home, tiny_gguf, published, monkeypatch):
    def fetch_one(repo, filename, local_dir, endpoint):
        assert (repo, filename) == ("org/tiny", "q4/tiny.gguf")
        return str(tiny_gguf)

    published.site.files["/"] = b"hub"
    monkeypatch.setattr(hub.huggingface_hub, "hf_hub_download", fetch_one)
    sources = Sources(f"{published.site.url}")
    stored = resolve.obtain("org/tiny/q4/tiny.gguf", sources=sources)
    assert stored.name == "org--tiny--q4--tiny"


def test_a_hub_that_cannot_be_reached_is_one_line(home, monkeypatch):
    monkeypatch.setattr(hub, "HUB_LIMIT_S", 0.5)
    sources = Sources("http://127.0.0.1:9")
    with pytest.raises(DownloadError, match="hub cannot be reached") as caught:
        resolve.obtain("org/name", sources=sources)
    assert "\n" not in str(caught.value)
