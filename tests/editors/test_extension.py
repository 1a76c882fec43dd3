"""The VS Code extension's manifest: its settings are the server's own."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from codekv.config import Config
from codekv.config_files import PROJECT_RULES, as_it_is

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
LOCAL = {"command", "python", "installFrom", "torchIndex", "packages"}
# Objects, and secrets: these belong into codekv.toml.
ONLY_IN_FILES = {"model.fim", "server.tcp_token", "trust.projects"}


def _options(model, path=""):
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _options(kind, f"{path}{name}.")
        else:
            yield f"{path}{name}", field


OPTIONS = dict(_options(Config))


@pytest.fixture(scope="module")
def manifest():
    return json.loads((FOLDER / "package.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def settings(manifest):
    blocks = manifest["contributes"]["configuration"]
    return {
        name.removeprefix("codekv."): value
        for block in blocks
        for name, value in block["properties"].items()
    }


def test_every_option_of_the_server_is_a_setting(settings):
    assert set(settings) - LOCAL == set(OPTIONS) - ONLY_IN_FILES


def test_defaults_and_limits_are_the_servers(settings):
    for name, setting in settings.items():
        if name in LOCAL:
            continue
        field = OPTIONS[name]
        expected = list(field.default) if field.default == () else field.default
        assert setting["default"] == ("" if expected is None else expected), name
        limits = {type(m).__name__: m for m in field.metadata}
        if "Ge" in limits:
            assert setting["minimum"] == limits["Ge"].ge, name
        if "Le" in limits:
            assert setting["maximum"] == limits["Le"].le, name


def test_every_choice_is_one_of_the_servers(settings):
    for name, setting in settings.items():
        if "enum" in setting:
            choices = OPTIONS[name].annotation.__args__
            assert tuple(setting["enum"]) == choices, name
            assert len(setting["enumDescriptions"]) == len(choices), name


def test_every_setting_says_what_it_does(settings):
    assert all(setting["markdownDescription"] for setting in settings.values())


def test_what_runs_programs_cannot_be_set_by_a_workspace(settings):
    assert all(settings[name]["scope"] == "machine" for name in LOCAL)


def test_an_untrusted_workspace_sets_no_more_than_a_projects_file_may(
    manifest, settings
):
    trust = manifest["capabilities"]["untrustedWorkspaces"]
    restricted = {
        name.removeprefix("codekv.") for name in trust["restrictedConfigurations"]
    }
    free = {name for name in settings if name.startswith("completion.")}
    unlimited = {name for name, rule in PROJECT_RULES.items() if rule is as_it_is}
    assert restricted == set(settings) - free - unlimited


def test_every_command_is_registered(manifest):
    source = (FOLDER / "src" / "commands.ts").read_text("utf-8")
    for command in manifest["contributes"]["commands"]:
        assert f"'{command['command']}':" in source, command["command"]


@pytest.mark.parametrize("folder", [FOLDER, Path(__file__).parent])
def test_lock_files_name_no_registry(folder):
    packages = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    assert not [name for name, each in packages.items() if "resolved" in each]
