from codekv.model.library.catalog import CATALOG
from lsp.models import known_models


def test_what_can_be_pulled_is_listed_with_the_command(monkeypatch):
    monkeypatch.setattr("codekv.model.library.store.list_models", list)
    listed = known_models()
    assert [each["name"] for each in listed] == [entry.name for entry in CATALOG]
    for each in listed:
        assert f"codekv model pull {each['name']}" in each["description"]


def test_what_is_in_the_store_comes_without_it(monkeypatch):
    class Stored:
        def __init__(self, name):
            self.name = name

    names = ("mine", CATALOG[0].name, "another")
    monkeypatch.setattr(
        "codekv.model.library.store.list_models", lambda: map(Stored, names)
    )
    listed = {each["name"]: each["description"] for each in known_models()}
    assert listed[CATALOG[0].name] == CATALOG[0].about
    assert listed["mine"] == "in the store"
    assert list(listed) == [*(entry.name for entry in CATALOG), "another", "mine"]
