"""Which models a user can choose from, for an editor's picker."""

from __future__ import annotations


def known_models() -> list[dict[str, str]]:
    """Name and describe what is in the store and what can be pulled.

    Looks at the disk: the store may have changed since the server started.
    """
    from codekv.model.library.catalog import CATALOG
    from codekv.model.library.store import list_models

    stored = {model.name for model in list_models()}
    known = {
        entry.name: entry.about
        if entry.name in stored
        else f"{entry.about}; not here: codekv model pull {entry.name}"
        for entry in CATALOG
    }
    others = sorted(stored - set(known))
    known |= dict.fromkeys(others, "in the store")
    return [
        {"name": name, "description": description}
        for name, description in known.items()
    ]
