"""Options that arrive while the server runs: pushed, pulled, or from a saved file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.uris import to_fs_path

from codekv import config_files
from codekv.completion.privacy.exclusion import IGNORE_FILE
from lsp.daemon_thread import aside
from lsp.log import configure_logging
from lsp.protocol import RefusedError
from lsp.settings import SECTION, pulled_values, pushed_values

if TYPE_CHECKING:
    from lsp.decode import Named, SettingsParams
    from lsp.server import Server

# Editors answer within a millisecond; one that does not must still be served.
PULL_SECONDS = 2.0
_FILES = frozenset({*config_files.CONFIG_NAMES, IGNORE_FILE})


def register(server: Server) -> None:
    """Take new options at any time."""

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed(params: SettingsParams) -> None:
        pushed = pushed_values(params.values)
        if pushed is not None or not server.client.has_configuration:
            # At once: the next question may follow right behind.
            server.settings.pushed = pushed or {}
            apply_settings(server)
        server.spawn(_pull_and_apply(server))

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: Named) -> None:
        path = to_fs_path(params.uri) if params.uri else None
        if path is not None and Path(path).name in _FILES:
            await reload_files(server)
            apply_settings(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            server.client.folders.pop(folder.uri, None)
        for folder in params.event.added:
            server.client.folders[folder.uri] = folder.name
        await pull(server)
        apply_settings(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def ignored(_params: Any) -> None:
        """Nobody asked for these; without a handler each would be a warning."""


async def _pull_and_apply(server: Server) -> None:
    if server.client.has_configuration:
        await pull(server)
        apply_settings(server)


async def pull(server: Server) -> None:
    """Ask the client for the options of every folder, if it can be asked."""
    client = server.client
    if not client.has_configuration:
        return
    scopes = [None, *client.folders]
    items = [types.ConfigurationItem(scope, SECTION) for scope in scopes]
    try:
        answer = await server.protocol.ask(
            types.WORKSPACE_CONFIGURATION,
            types.ConfigurationParams(items),
            PULL_SECONDS,
        )
    except RefusedError:
        return
    values = answer if isinstance(answer, list) else []
    server.settings.pulled = {
        scope or "": pulled_values(value)
        for scope, value in zip(scopes, values, strict=False)
    }


async def watch(server: Server) -> None:
    """Ask the client to tell of changes, if it wants to be asked for that."""
    if not server.client.can_register_configuration:
        return
    registration = types.Registration(
        "codekv-configuration",
        types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        {"section": SECTION},
    )
    try:
        await server.protocol.ask(
            types.CLIENT_REGISTER_CAPABILITY,
            types.RegistrationParams([registration]),
            PULL_SECONDS,
        )
    except RefusedError:
        return


async def reload_files(server: Server) -> None:
    """Read the configuration files again, off the loop."""
    settings = server.settings
    settings.files, settings.file_problems = await aside(
        lambda: config_files.load(server.client.workspace)
    )


def apply_settings(server: Server) -> None:
    """Put changed layers into force and report what was not taken."""
    settings = server.settings
    settings.forget_merged()
    server.guard.forget_rules()
    merged = settings.for_folder()
    configure_logging(merged)
    server.host.configure(merged)
    problems = settings.new_problems()
    if problems:
        text = "codekv: some settings are not used:\n" + "\n".join(problems)
        server.window_show_message(
            types.ShowMessageParams(types.MessageType.Warning, text)
        )
