import pytest

from codekv.config import Config
from lsp.settings import (
    EditorSettings,
    initial_values,
    pulled_values,
    pushed_values,
    token_of,
)


def test_later_layers_win():
    settings = EditorSettings(
        initial={"completion": {"max_tokens": 1, "max_lines": 2}},
        pushed={"completion": {"max_tokens": 3}},
        pulled={"": {"completion": {"candidates": 1}}},
    )
    merged = settings.for_folder().completion
    assert (merged.max_tokens, merged.max_lines, merged.candidates) == (3, 2, 1)


def test_a_folder_has_its_own_layer_and_others_have_the_common_one():
    settings = EditorSettings(
        pulled={
            "": {"completion": {"max_tokens": 5}},
            "file:///a": {"completion": {"max_tokens": 6}},
        }
    )
    assert settings.for_folder("file:///a").completion.max_tokens == 6
    assert settings.for_folder("file:///b").completion.max_tokens == 5


def test_the_merged_configuration_is_made_once_until_a_layer_changes():
    settings = EditorSettings()
    first = settings.for_folder()
    assert settings.for_folder() is first
    settings.pushed = {"completion": {"max_tokens": 9}}
    settings.forget_merged()
    assert settings.for_folder().completion.max_tokens == 9


def test_problems_are_told_once_and_again_when_they_come_back():
    settings = EditorSettings(pushed={"completion": {"max_tokens": -1}})
    assert len(settings.new_problems()) == 1
    assert settings.new_problems() == ()
    settings.pushed = {}
    assert settings.new_problems() == ()
    settings.pushed = {"completion": {"max_tokens": -1}}
    assert len(settings.new_problems()) == 1
    assert settings.for_folder() == Config()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (None, {}),
        ([], {}),
        ({"model": {"name": "m"}}, {"model": {"name": "m"}}),
        ({"codekv": {"model": {"name": "m"}}, "x": 1}, {"model": {"name": "m"}}),
        ({"token": "t", "editorInfo": {}, "editorPluginInfo": {}}, {}),
        ({"model.fim.prefix": "a", "model": {"name": None}},
         {"model": {"fim": {"prefix": "a"}}}),
    ],
)  # fmt: skip
def test_initial_options_in_any_shape(options, wanted):
    assert initial_values(options) == wanted


@pytest.mark.parametrize(
    ("pushed", "wanted"),
    [
        (None, None),
        (3, None),
        ({"codekv": None}, None),
        ({"codekv": {"model": {}}}, {"model": {}}),
        ({"model": {"name": "m"}}, {"model": {"name": "m"}}),
        ({"modle": {"name": "m"}}, {"modle": {"name": "m"}}),
        ({"pylsp": {}}, {}),
        ({}, {}),
    ],
)
def test_pushed_settings_in_any_shape(pushed, wanted):
    assert pushed_values(pushed) == wanted


def test_what_belongs_to_the_editors_extension_is_not_ours():
    pulled = {"command": ["x"], "enable": True, "model": {"name": "m", "x": None}}
    assert pulled_values(pulled) == {"model": {"name": "m"}}
    assert pulled_values(None) == {}


def test_a_token_is_a_text():
    assert token_of({"token": "t"}) == "t"
    assert token_of({"token": 7}) is None
    assert token_of(None) is None
