"""What one client is and can do, read once from its initialize request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pygls.uris import to_fs_path

from codekv.completion.api import Trigger
from lsp.addresses import canonical_uri

if TYPE_CHECKING:
    from lsprotocol import types

    from lsp.decode import CompletionParams

_CLIENT_WAITS = {"neovim": 0.2}
"""Seconds that an editor is known to wait after a key before it asks."""

_NEW_NUMBERING = frozenset({"neovim"})
"""Clients that never had the old trigger kinds."""

# Seconds: longer than an editor takes from a key to its question.
_TYPED_JUST_NOW = 0.15
# `InlineCompletionTriggerKind` of the protocol.
_INVOKED, _AUTOMATIC = 1, 2


class Numbering(Enum):
    """Which trigger kinds a client sends: clients before LSP 3.18 count from zero."""

    UNKNOWN = "unknown"
    OLD = "old"
    NEW = "new"


@dataclass(slots=True)
class ClientProfile:
    """BlockMetadata about a client; all false for one that has said nothing."""

    name: str = ""
    has_inline_completion: bool = False
    has_progress: bool = False
    has_questions: bool = False
    has_configuration: bool = False
    can_register_configuration: bool = False
    folders: dict[str, str] = field(default_factory=dict)
    numbering: Numbering = Numbering.UNKNOWN

    @classmethod
    def of(cls, params: types.InitializeParams) -> ClientProfile:
        """Read the facts from an initialize request."""
        caps = params.capabilities
        text, window, workspace = caps.text_document, caps.window, caps.workspace
        change = workspace.did_change_configuration if workspace else None
        folders = {f.uri: f.name for f in params.workspace_folders or ()}
        if not folders and params.root_uri:
            folders = {params.root_uri: ""}
        inline = text.inline_completion if text else None
        # Clients that announce it like VS Code but none of LSP 3.18 are before 10.
        is_old = (
            inline is not None
            and bool(inline.dynamic_registration)
            and (workspace is None or workspace.text_document_content is None)
        )
        name = params.client_info.name.lower() if params.client_info else ""
        numbering = Numbering.NEW if name in _NEW_NUMBERING else Numbering.UNKNOWN
        return cls(
            name=name,
            has_inline_completion=inline is not None,
            has_progress=bool(window and window.work_done_progress),
            has_questions=bool(window and window.show_message),
            has_configuration=bool(workspace and workspace.configuration),
            can_register_configuration=bool(change and change.dynamic_registration),
            folders=folders,
            numbering=Numbering.OLD if is_old else numbering,
        )

    @property
    def workspace(self) -> Path | None:
        """The first folder that is on this machine."""
        paths = (to_fs_path(uri) for uri in self.folders)
        return next((Path(path) for path in paths if path is not None), None)

    @property
    def wait(self) -> float:
        """Seconds this client waits by itself before it asks."""
        return _CLIENT_WAITS.get(self.name, 0.0)

    def folder_of(self, uri: str) -> str:
        """Tell the innermost workspace folder of a document; "" if it is in none."""
        inside = [
            f
            for f in self.folders
            if uri.startswith(canonical_uri(f).rstrip("/") + "/")
        ]
        return max(inside, key=len, default="")

    def trigger_of(self, ask: CompletionParams, since_change: float | None) -> Trigger:
        """Tell whether a person asked, whichever numbers the client uses.

        Old clients send 0 and 1 where new ones send 1 and 2, so a 1 alone says
        nothing: until a client shows which it is, a 1 right after a change is taken
        for automatic, since nobody presses a second key that fast.
        """
        kind = ask.trigger_kind
        if ask.is_old_client:
            self.numbering = Numbering.OLD
        elif kind == _AUTOMATIC:
            self.numbering = Numbering.NEW
        if self.numbering is Numbering.OLD:
            return Trigger.INVOKED if kind == 0 else Trigger.AUTOMATIC
        if kind != _INVOKED:
            return Trigger.AUTOMATIC
        typed = since_change is not None and since_change < _TYPED_JUST_NOW
        if typed and self.numbering is Numbering.UNKNOWN:
            return Trigger.AUTOMATIC
        return Trigger.INVOKED
