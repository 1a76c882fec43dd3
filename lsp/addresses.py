"""One spelling for each document's address.

Editors escape the same address differently, and one editor may do so from one message
to the next: `file:///c%3A/x` and `file:///C:/x` are one file. Inside the server an
address has one spelling, made where messages are decoded.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:(?://[^/?#]*)?)([^?#]*)(.*)", re.DOTALL)
_DRIVE = re.compile(r"/[A-Z]:(?=/|$)")
# What RFC 3986 allows in a path without an escape, beside letters and digits.
_PLAIN = "/:@!$&'()*+,;=~-._"


def canonical_uri(uri: str) -> str:
    """Spell an address the one way: few escapes, drive letters in lower case.

    Scheme, host, query and fragment stay as they are; so does what is no address.
    """
    parts = _PARTS.fullmatch(uri)
    if parts is None:
        return uri
    head, path, tail = parts.groups()
    path = quote(unquote_to_bytes(path), safe=_PLAIN)
    if head.startswith("file:"):
        path = _DRIVE.sub(lambda drive: drive[0].lower(), path, count=1)
    return f"{head}{path}{tail}"
