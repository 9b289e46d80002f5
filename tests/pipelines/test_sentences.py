"""The sentences of a verdict: short, in plain words, with numbers as a person reads them."""

import re
from typing import Any

import pytest

from quotaflow.pipelines import reasons

from ..cases import cases
from .test_reasons import CASES, WORDINGS

PLACES = (("diagnoses", "symptom"), ("client_diagnoses", "cause"))
MAX_WORDS = 22
"""Of a sentence or a clause after a semicolon; a time counts as two."""
WORN_OUT = re.compile(r"\b(held|past|fits?|binds?|asked|most of the time)\b")
LONG_NUMBER = re.compile(r"\d+\.\d{2,}|\d{7,}|[0-9]e[+-]?\d")
EACH = [
    pytest.param(wording, column, CASES[f"{view}.{column}"][code].get("row", {}), id=code)
    for view, column in PLACES
    for code, wording in WORDINGS[view, column].items()
]
HUGE = 123_456_789.123


def sentence(wording: reasons.Wording, column: str, row: dict[str, Any]) -> str:
    """The words with these cells; others are unknown."""
    return wording.words(dict.fromkeys(wording.evidence) | {column: wording.code} | row)


def with_numbers(row: dict[str, Any], value: float) -> dict[str, Any]:
    is_number = (int, float)
    return {name: value if isinstance(cell, is_number) else cell for name, cell in row.items()}


@pytest.mark.parametrize(("wording", "column", "row"), EACH)
def test_a_sentence_is_short_and_plain_whatever_its_numbers(
    wording: reasons.Wording, column: str, row: dict[str, Any]
) -> None:
    for given in (row, {}, with_numbers(row, 0.0), with_numbers(row, HUGE)):
        text = sentence(wording, column, given)
        assert max(len(part.split()) for part in re.split(r"[;.]\s", text)) <= MAX_WORDS, text
        assert WORN_OUT.search(text) is None, text
    assert LONG_NUMBER.search(sentence(wording, column, row)) is None


@cases(
    ("text",),
    ("a float of six digits", "it waits 51.9091 bytes/s"),
    ("an exponent", "it waits 5e-05 s"),
)
def test_a_number_that_nobody_reads_is_found(text: str) -> None:
    assert LONG_NUMBER.search(text)


def test_steps_are_for_causes_and_have_no_full_stop() -> None:
    for code, wording in WORDINGS["client_diagnoses", "cause"].items():
        has_step = code not in {"other_errors", "not_explained"}
        assert (wording.cure is not None) is has_step
        assert not (wording.cure or "").endswith(".")
