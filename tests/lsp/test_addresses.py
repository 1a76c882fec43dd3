from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp.addresses import canonical_uri


@pytest.mark.parametrize(
    "uris",
    [
        ["file:///c%3A/a b.py", "file:///C:/a%20b.py", "file:///c:/a b.py",
         "file:///C%3a/a%20b.py"],
        ["file:///w/%C3%A9.py", "file:///w/é.py"],
        ["file:///w/%40x/%5Bid%5D.tsx", "file:///w/@x/[id].tsx"],
        ["untitled:Untitled-1", "untitled:Untitled%2D1"],
        ["vscode-notebook-cell:/c%3A/n.ipynb#W0",
         "vscode-notebook-cell:/c:/n.ipynb#W0"],
    ],
)  # fmt: skip
def test_spellings_of_one_address_are_one(uris):
    assert len({canonical_uri(uri) for uri in uris}) == 1


@pytest.mark.parametrize(
    "uris",
    [
        ["file:///w/a.py", "file:///w/A.py"],
        ["file:///w/a%23b.py", "file:///w/a#b.py"],
        ["file:///w/a%3Fb.py", "file:///w/a?b.py"],
        ["file:///w/a%2520b.py", "file:///w/a%20b.py"],
        ["file://host/w/a.py", "file:///w/a.py"],
        ["untitled:/C:/a.py", "untitled:/c:/a.py"],
        ["file:///w/cell#1", "file:///w/cell#2"],
    ],
)
def test_different_addresses_stay_different(uris):
    assert len({canonical_uri(uri) for uri in uris}) == len(uris)


@given(st.text(max_size=30), st.sampled_from(["file://", "untitled:", "x", ""]))
def test_spelling_twice_changes_nothing(path, scheme):
    once = canonical_uri(scheme + path.encode("utf-8", "ignore").decode())
    assert canonical_uri(once) == once


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_escapes_do_not_count(path):
    plain = f"file:///w/{quote(path, safe='')}"
    other = f"file:///w/{quote(path, safe='/:@+,;=')}"
    assert canonical_uri(plain) == canonical_uri(other)
