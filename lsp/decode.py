"""Raw parameters to values, tolerant where editors are known to differ.

A decoder takes whatever JSON came and gives a frozen value or raises `ShapeError`.
Old clients number trigger kinds from zero and send ranges as pairs; other clients add
fields that the protocol does not know; neither may cost an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsp.addresses import canonical_uri
from lsp.documents import Change, DocumentPlace, TextSpan

_KEPT_CAPABILITIES = {
    "general": ("positionEncodings",),
    "window": ("workDoneProgress",),
    "workspace": ("configuration", "didChangeConfiguration"),
    "textDocument": ("inlineCompletion",),
}


class ShapeError(ValueError):
    """Parameters have a shape that no editor means."""


@dataclass(frozen=True, slots=True)
class SelectedEntry:
    """The popup's entry and the span it would replace."""

    span: TextSpan
    text: str


@dataclass(frozen=True, slots=True)
class CompletionParams:
    """A question for a completion.

    Attributes:
        trigger_kind: The number as it came, or None; its meaning depends on the
            client.
        is_old_client: Seen to speak the shapes of language clients before 10.
    """

    uri: str
    place: DocumentPlace
    trigger_kind: int | None = None
    selected: SelectedEntry | None = None
    is_old_client: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A document and its whole text."""

    uri: str
    language: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Changed:
    """Edits of one document, in order."""

    uri: str
    version: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """Any notification that is about a document, or about none."""

    uri: str | None


@dataclass(frozen=True, slots=True)
class Offered:
    """An item the client shows or took, as it got it from here.

    Attributes:
        accepted_units: UTF-16 units of the text taken so far, or None for all.
    """

    item_id: str | None
    text: str
    accepted_units: int | None = None


@dataclass(frozen=True, slots=True)
class SettingsParams:
    """What came as settings, unexamined."""

    values: Any


def decode_place(value: Any) -> DocumentPlace:
    """Decode a position."""
    table = table_of(value)
    return DocumentPlace(
        number_of(table.get("line")), number_of(table.get("character"))
    )


def decode_span(value: Any) -> TextSpan:
    """Decode a range: an object, or the pair that old clients send."""
    if isinstance(value, list):
        if len(value) != 2:  # noqa: PLR2004 - a pair
            raise ShapeError("a range is two positions")
        return TextSpan(decode_place(value[0]), decode_place(value[1]))
    table = table_of(value)
    return TextSpan(decode_place(table.get("start")), decode_place(table.get("end")))


def decode_ask(value: Any) -> CompletionParams:
    """Decode the parameters of either completion request."""
    params = table_of(value)
    context = params.get("context")
    context = context if isinstance(context, dict) else {}
    kind = context.get("triggerKind")
    kind = kind if isinstance(kind, int) and not isinstance(kind, bool) else None
    selected, is_pair = _decode_selected(context.get("selectedCompletionInfo"))
    return CompletionParams(
        uri=_uri(params),
        place=decode_place(params.get("position")),
        trigger_kind=kind,
        selected=selected,
        is_old_client=is_pair or kind == 0,
    )


def decode_opened(value: Any) -> Opened:
    """Decode `textDocument/didOpen`."""
    return opened_of(table_of(value).get("textDocument"))


def opened_of(value: Any) -> Opened:
    """Decode a text document item."""
    item = table_of(value)
    language = item.get("languageId")
    return Opened(
        uri=uri_of(item.get("uri")),
        language=language if isinstance(language, str) else "",
        version=version_of(item),
        text=text_of(item.get("text")),
    )


def decode_changed(value: Any) -> Changed:
    """Decode `textDocument/didChange`."""
    params = table_of(value)
    changes = params.get("contentChanges")
    if not isinstance(changes, list):
        raise ShapeError("contentChanges is a list")
    identifier = table_of(params.get("textDocument"))
    return Changed(
        uri=uri_of(identifier.get("uri")),
        version=version_of(identifier),
        changes=tuple(change_of(change) for change in changes),
    )


def change_of(value: Any) -> Change:
    """Decode one content change."""
    change = table_of(value)
    span = change.get("range")
    text = text_of(change.get("text"))
    return Change(None if span is None else decode_span(span), text)


def decode_named(value: Any) -> Named:
    """Decode a notification about a document; one without a document is fine."""
    document = value.get("textDocument") if isinstance(value, dict) else None
    uri = document.get("uri") if isinstance(document, dict) else None
    return Named(uri_of(uri) if isinstance(uri, str) else None)


def decode_offered(value: Any) -> Offered:
    """Decode Copilot's notifications about a shown or partly accepted item."""
    params = table_of(value)
    item = table_of(params.get("item"))
    command = item.get("command")
    arguments = command.get("arguments") if isinstance(command, dict) else None
    first = arguments[0] if isinstance(arguments, list) and arguments else None
    text = item.get("insertText")
    length = params.get("acceptedLength")
    return Offered(
        item_id=first if isinstance(first, str) else None,
        text=text if isinstance(text, str) else "",
        accepted_units=None if length is None else number_of(length),
    )


def decode_settings(value: Any) -> SettingsParams:
    """Decode `workspace/didChangeConfiguration`."""
    return SettingsParams(value.get("settings") if isinstance(value, dict) else None)


def minimal_initialize(data: dict[str, Any]) -> dict[str, Any]:
    """Reduce a malformed initialize request to what the server cannot do without."""
    params = data.get("params")
    params = params if isinstance(params, dict) else {}
    capabilities = params.get("capabilities")
    capabilities = capabilities if isinstance(capabilities, dict) else {}
    kept: dict[str, Any] = {}
    for section, names in _KEPT_CAPABILITIES.items():
        table = capabilities.get(section)
        if isinstance(table, dict):
            kept[section] = {name: table[name] for name in names if name in table}
    minimal = {
        "processId": None,
        "rootUri": None,
        "capabilities": kept,
        "initializationOptions": params.get("initializationOptions"),
    }
    return {**data, "params": minimal}


def _decode_selected(value: Any) -> tuple[SelectedEntry | None, bool]:
    """Decode the popup's entry; a malformed one is as good as none."""
    if not isinstance(value, dict):
        return None, False
    try:
        entry = SelectedEntry(
            decode_span(value.get("range")), text_of(value.get("text"))
        )
    except ShapeError:
        return None, False
    return entry, isinstance(value.get("range"), list)


def table_of(value: Any) -> dict[str, Any]:
    """Give a JSON object, or raise."""
    if not isinstance(value, dict):
        raise ShapeError("expected an object")
    return value


def text_of(value: Any) -> str:
    """Give a text, or raise."""
    if not isinstance(value, str):
        raise ShapeError("expected text")
    return value


def uri_of(value: Any) -> str:
    """Give an address in its one spelling, or raise."""
    return canonical_uri(text_of(value))


def number_of(value: Any) -> int:
    """Give a whole number, or raise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ShapeError("expected a number")
    return int(value)


def version_of(table: dict[str, Any]) -> int:
    """Give a document's version; zero if there is none."""
    version = table.get("version")
    return version if isinstance(version, int) else 0


def _uri(params: dict[str, Any]) -> str:
    return uri_of(table_of(params.get("textDocument")).get("uri"))


def list_of(value: Any) -> list[Any]:
    """Give a JSON array; none at all is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise ShapeError("expected a list")
    return value
