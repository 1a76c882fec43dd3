"""Who may ask over HTTP: this machine's own tools, never a web page.

A browser can send requests to loopback for any page. It names the page in `Origin`,
so requests with that header are refused; it cannot send JSON to another origin
without asking first, and no such question is answered; and a page that points its
own host name at this machine is known by `Host`. Pure functions of headers.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BODY_BYTES = 4 << 20
"""Four times the largest document that is worth a window."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered: an HTTP status and one line."""

    status: int
    message: str


def refusal(headers: Mapping[str, str], token: str | None) -> Refusal | None:
    """Judge a request by its headers, names in lower case; None if it may ask."""
    if "origin" in headers:
        return Refusal(403, "requests of web pages are not answered")
    if token is None and not is_this_machine(headers.get("host", "")):
        return Refusal(403, "the Host header does not name this machine")
    if token is not None and not _has_token(headers.get("authorization", ""), token):
        return Refusal(401, "the token is missing or wrong; send it as Bearer")
    return None


def body_refusal(headers: Mapping[str, str]) -> Refusal | None:
    """Judge a request that brings a body; None if it may be read."""
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        return Refusal(415, "send the body as application/json")
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        return too_large()
    return None


def too_large() -> Refusal:
    """The refusal of a body over the limit."""
    return Refusal(413, f"the body is larger than {MAX_BODY_BYTES >> 20} MB")


def is_this_machine(host: str) -> bool:
    """Whether a Host header names a loopback address, with or without a port."""
    name = host.strip()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _has_token(authorization: str, token: str) -> bool:
    kind, _, given = authorization.partition(" ")
    is_same = hmac.compare_digest(given.strip().encode(), token.encode())
    return kind.lower() == "bearer" and is_same
