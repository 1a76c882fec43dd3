import os
from dataclasses import replace

import pytest

from codekv.completion.api import Request, Trigger
from codekv.completion.document import CodeDocuments
from codekv.completion.pipeline import Pipeline
from codekv.completion.prompt.layout import build
from codekv.completion.prompt.other_files import OtherFiles
from codekv.completion.prompt.window import Limits, Place
from codekv.completion.prompt.workspace import SEEN_AT_ONCE, WorkspaceIndex
from codekv.config import Config, PrivacyConfig, apply
from codekv.cooperative import finish
from codekv.engine.engine import Engine
from codekv.engine.speed import Speed
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer, TinyRuntime
from codekv.text.snapshot import Snapshot

PRICES = "def price_of(item):\n    return 1\n\ndef rate_of(item):\n    return 2\n"
SHOP = "class Shop:\n    def total(self, cart):\n        return 0\n"


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "app" / "prices.py", PRICES)
    write(tmp_path / "app" / "shop.py", SHOP)
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def make(folder, room=2000):
    index = WorkspaceIndex(folder, PrivacyConfig())
    finish(index.scan())
    return OtherFiles(index, ByteTokenizer(), room)


def document(path, text, version=0):
    documents = CodeDocuments(ByteTokenizer(), Parser(), 64)
    return documents.update(Snapshot(path.as_uri(), version, "python", text.encode()))


def lead(others, doc) -> str:
    others.refresh(doc)
    return bytes(others.tokens(doc.snapshot.uri)).decode()


def test_what_is_imported_is_told_of(folder) -> None:
    doc = document(folder / "app" / "main.py", "from app.prices import price_of\n")

    assert lead(make(folder), doc) == ("# app/prices.py\ndef price_of(item): ...\n")


def test_what_is_new_goes_behind_what_was_there(folder) -> None:
    others, main = make(folder), folder / "app" / "main.py"
    first = lead(others, document(main, "from app.shop import Shop\n"))
    both = "from app.prices import price_of\nfrom app.shop import Shop\n"
    second = lead(others, document(main, both, 1))

    assert "Shop" in first
    assert second.startswith(first)
    assert "price_of" in second


def test_typing_elsewhere_in_the_file_changes_nothing(folder) -> None:
    others, main = make(folder), folder / "app" / "main.py"
    text = "from app.shop import Shop\n"
    first = lead(others, document(main, text))
    changed = document(main, text + "x = Shop()\n", 1)

    assert not others.refresh(changed)
    assert lead(others, changed) == first


def test_the_editors_text_counts_before_the_disks(folder) -> None:
    others, main = make(folder), folder / "app" / "main.py"
    shop = document(
        folder / "app" / "shop.py", "class Shop:\n    def sell(self): ...\n"
    )
    others.index.update(shop.tree)
    doc = document(main, "from app.shop import Shop\n")

    assert "sell" in lead(others, doc)
    finish(others.index.scan())
    others.forget(shop.snapshot.uri)
    assert "total" in lead(others, doc)


def test_a_scan_reads_only_what_changed(folder) -> None:
    index = WorkspaceIndex(folder, PrivacyConfig())
    assert finish(index.scan()) == 2
    assert finish(index.scan()) == 0
    write(folder / "app" / "prices.py", PRICES + "\n\ndef more():\n    return 3\n")
    assert finish(index.scan()) == 1
    doc = document(folder / "app" / "main.py", "from app.prices import more\n")
    assert [entry.outline.name for entry in index.wanted(doc.tree)] == [b"more"]


def test_a_removed_file_is_forgotten(folder) -> None:
    others = make(folder)
    doc = document(folder / "app" / "main.py", "from app.shop import Shop\n")
    assert lead(others, doc)
    (folder / "app" / "shop.py").unlink()
    finish(others.index.scan())

    assert others.index.wanted(doc.tree) == ()
    assert lead(others, doc) == ""


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("secret_settings.py", {".gitignore": "secret_*.py\n"}),
        ("build/made.py", {".gitignore": "build/\n"}),
        ("app/inner/made.py", {"app/.gitignore": "inner\n"}),
        ("app/private.py", {".codekvignore": "app/private.py\n"}),
        ("node_modules/x.js", {}),
        (".venv/x.py", {}),
        ("app/made_pb2.py", {}),
        (".env", {}),
        ("app/.env.py", {}),
        ("id_rsa.py", {}),
    ],
)
def test_what_is_ignored_never_reaches_a_prompt(folder, name, rules) -> None:
    for rule, text in rules.items():
        write(folder / rule, text)
    hidden = folder / name
    write(hidden, "def planted():\n    return 'planted'\n")
    others = make(folder)
    text = "from x import planted\nfrom app.shop import Shop\n"
    doc = document(folder / "app" / "main.py", text)

    assert "planted" not in lead(others, doc)
    # Not when it is open in the editor either, nor as a place visited.
    open_one = document(hidden, "def planted():\n    return 'planted'\n")
    others.index.update(open_one.tree)
    others.visited(open_one, 30)
    assert "planted" not in lead(others, doc)
    assert "Shop" in lead(others, doc)


def test_a_file_with_a_secret_in_it_is_left_out(folder) -> None:
    key = "AKIA" + "Q7RT2LKM9XWZ4NBV"
    write(folder / "app" / "keys.py", f"KEY = '{key}'\ndef planted():\n    return 1\n")
    doc = document(folder / "app" / "main.py", "from app.keys import planted\n")

    assert lead(make(folder), doc) == ""


def test_a_link_out_of_the_workspace_is_not_followed(folder, tmp_path_factory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    write(outside / "far.py", "def planted():\n    return 1\n")
    (folder / "app" / "link").symlink_to(outside)
    doc = document(folder / "app" / "main.py", "from far import planted\n")

    assert lead(make(folder), doc) == ""


def test_of_several_definitions_the_nearest_counts(folder) -> None:
    write(folder / "other" / "shop.py", "class Shop:\n    def other(self): ...\n")
    text = "from shop import Shop\n"
    near = document(folder / "app" / "main.py", text)
    between = document(folder / "main.py", text)

    assert "total" in lead(make(folder), near)
    assert lead(make(folder), between) == ""


def test_recent_edits_in_other_files_come_last(folder) -> None:
    others = make(folder)
    shop = document(folder / "app" / "shop.py", SHOP)
    others.visited(shop, len(SHOP) - 1)
    main = document(folder / "app" / "main.py", "from app.prices import price_of\n")
    text = lead(others, main)

    assert text.index("price_of") < text.index("return 0")
    assert "return 0" not in lead(others, shop)


def test_there_is_never_more_than_there_is_room_for(folder) -> None:
    doc = document(
        folder / "app" / "main.py", "from app.prices import price_of, rate_of\n"
    )

    assert len(lead(make(folder, room=50), doc)) <= 50


def test_a_prompt_is_told_of_other_files_first() -> None:
    data = b"def f():\n    return 1\n"
    tokenizer = ByteTokenizer()
    place = Place(data, tokenizer.encode(data), 0, len(data) - 2)
    limits = Limits(200, 40, 20)
    plain = build(place, tokenizer, limits)
    told = build(place, tokenizer, limits, lead=b"# x\n")

    assert told.tokens[1:5] == tuple(b"# x\n")
    assert told.tokens[:1] + told.tokens[5:] == plain.tokens
    assert told.prefix == plain.prefix + 4
    long = build(place, tokenizer, limits, lead=b"#" * 120)
    assert len(long.tokens) <= 200 - 20


@pytest.fixture
def told(folder):
    """A pipeline whose document imports something, and its text."""
    settings = {
        "kvcache": {"max_length": 700, "chunk_size": 64},
        "completion": {
            "max_tokens": 4,
            "suffix_tokens": 60,
            "latency_budget_ms": 60000,
            "other_files": True,
        },
    }
    config, problems = apply(Config(), settings, "test")
    assert not problems
    runtime, tokenizer = TinyRuntime(), ByteTokenizer()
    budget, codec = StoreBudget(64 << 20), PlainCodec("fp32")
    store = BlockStore(fingerprint="t", budget=budget, codec=codec)
    engine = Engine(runtime, tokenizer, tokenizer.token_bytes, store, config.kvcache)
    engine.speed = Speed(0.001, 0.001)
    pipeline = Pipeline(
        engine, tokenizer, CodeDocuments(tokenizer, Parser(), 64), config
    )
    pipeline.watch(make(folder, room=200))
    uri = (folder / "app" / "main.py").as_uri()
    text = (
        b"from app.shop import Shop\n\n\ndef main():\n    shop = Shop()\n    x = sh\n"
    )
    return pipeline, Snapshot(uri, 0, "python", text)


def test_a_keystroke_never_pays_for_other_files(told) -> None:
    pipeline, snapshot = told
    request = Request(snapshot, len(snapshot.data) - 1, Trigger.INVOKED)
    first = finish(pipeline.complete(request, 0.0))
    finish(pipeline.prepare(request))
    second = finish(pipeline.complete(request, 0.0))

    assert second.tokens.context > first.tokens.context + 20
    assert second.tokens.computed <= 1
    data = snapshot.data[:-1] + b"o\n"
    typed = replace(request, snapshot=replace(snapshot, data=data, version=1))
    third = finish(pipeline.complete(replace(typed, cursor_byte=len(data) - 1), 0.0))
    assert third.tokens.computed <= 2


def test_what_is_warmed_stands_behind_what_is_told(told) -> None:
    pipeline, snapshot = told
    request = Request(snapshot, len(snapshot.data) - 1, Trigger.INVOKED)
    finish(pipeline.complete(request, 0.0))
    finish(pipeline.prepare(request))
    finish(pipeline.warm(snapshot, persist=False))
    (chain,) = pipeline.engine.chains.sequences()

    assert bytes(chain.tokens[1:]).startswith(b"# app/shop.py\nclass Shop:")


def test_it_is_told_only_if_asked_for(told) -> None:
    pipeline, snapshot = told
    config = pipeline.config
    off = config.completion.model_copy(update={"other_files": False})
    pipeline.reconfigure(config.model_copy(update={"completion": off}))
    request = Request(snapshot, len(snapshot.data) - 1, Trigger.INVOKED)
    first = finish(pipeline.complete(request, 0.0))
    finish(pipeline.prepare(request))

    assert (
        finish(pipeline.complete(request, 0.0)).tokens.context == first.tokens.context
    )


def test_a_large_folder_is_looked_through_in_small_steps(tmp_path) -> None:
    for number in range(500):
        (tmp_path / f"{number}.txt").touch()
    write(tmp_path / "z.py", PRICES)
    index = WorkspaceIndex(tmp_path, PrivacyConfig())

    num_steps = sum(1 for _ in index.scan())

    assert num_steps >= 500 // SEEN_AT_ONCE
    assert len(index) == 1


def test_links_and_whatever_is_no_file_are_left_out(tmp_path) -> None:
    outside = tmp_path / "outside.py"
    write(outside, PRICES)
    root = tmp_path / "root"
    write(root / "a.py", SHOP)
    (root / "link.py").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(root / "pipe.py")
    os.mkfifo(root / ".gitignore")
    index = WorkspaceIndex(root, PrivacyConfig())

    finish(index.scan())

    assert len(index) == 1
