import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.endpoint.questions import (
    completions_question,
    infill_question,
    raw_question,
)
from codekv.errors import UsageError
from codekv.tokens.fim import FAMILIES

TEXT = st.text(alphabet="ab \n(<|é", max_size=30)


@pytest.mark.parametrize("family", FAMILIES)
@given(TEXT, TEXT, TEXT)
def test_a_raw_prompt_of_any_family_is_taken_apart(family, before, after, typed):
    m = FAMILIES[family]
    psm = f"{m.prefix}{before}{m.suffix}{after}{m.middle}{typed}"
    spm = f"{m.suffix}{after}{m.prefix}{before}{m.middle}{typed}"
    for prompt in (psm, spm):
        question = completions_question({"prompt": prompt})
        assert (question.before, question.after) == (before + typed, after)


def test_a_prompt_with_a_suffix_is_never_taken_for_a_raw_one():
    body = {"prompt": "a <|fim_prefix|> b", "suffix": "<|fim_suffix|><|fim_middle|>"}
    question = completions_question(body)
    assert question.before == "a <|fim_prefix|> b"
    assert question.after == "<|fim_suffix|><|fim_middle|>"


def test_the_path_in_a_raw_prompt_is_found():
    prompt = (
        "<|repo_name|>shop\n<|file_sep|>src/cart.go\n"
        "<|fim_prefix|>package cart<|fim_suffix|><|fim_middle|>"
    )
    assert raw_question({"prompt": prompt}).path == "src/cart.go"


def test_minuet_tells_the_language_in_its_first_line():
    prompt = "# language: python\n# indentation: use 4 spaces for a tab\ndef f("
    question = completions_question({"prompt": prompt, "suffix": "\n"})
    assert question.language == "python"
    assert question.before == prompt


def test_infill_joins_what_stands_before_the_cursor():
    body = {
        "input_prefix": "a\r\n",
        "prompt": "  b",
        "input_suffix": "c\rd",
        "n_predict": -1,
        "input_extra": [{"filename": "x", "text": "y"}],
    }
    question = infill_question(body)
    assert question.before == "a\n  b"
    assert question.after == "c\nd"
    assert question.max_tokens is None


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "prompt"),
        ({"prompt": [1, 2, 3]}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": "a", "suffix": 3}, "suffix"),
        ({"prompt": "a", "stop": [3]}, "stop"),
        ({"prompt": "a", "max_tokens": "many"}, "max_tokens"),
        ({"prompt": "a", "n": True}, "n:"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(body, word):
    with pytest.raises(UsageError, match=word) as caught:
        completions_question(body)
    assert "\n" not in str(caught.value)
