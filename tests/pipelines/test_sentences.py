"""What people read: short sentences, in plain words, with numbers as a person reads them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from quotaflow.pipelines import reasons
from quotaflow.pipelines.reasons.wording import OF_EVERY_ROW

from .. import sentences
from ..cases import cases
from ..conftest import GOLDEN
from ..delta_tables import NOON
from .test_reasons import CASES, WORDINGS

MAX_WORDS = 20
"""Of a sentence, or of a clause after a colon or semicolon."""
CODE = re.compile(r"`[^`]*`|kafka-\w+\.sh .*|\(.*?\)")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
KAFKAS = {"producer_byte_rate", "consumer_byte_rate", "request_percentage"}
KAFKAS |= {"controller_mutation_rate", "connection_creation_rate"}
"""Kafka's own names with an underscore."""
FAULTS = {
    "a retired word": re.compile(
        r"\b(held|holds|past|fits?|binds?|asked|anew|tells?|most of the time)\b"
    ),
    "a float of more than three digits": re.compile(
        r"\b(?=[\d.]{5,})[1-9]\d*\.\d+(?![\d.]*\.)|\b\d+(?:\.\d+)?e[+-]?\d+\b"
    ),
    "an empty value": re.compile(r"\b(None|nan|NaN|inf)\b|: ?\.$|\(\)"),
}
IDENTIFIER = re.compile(r"(?<![\w.])[a-z]+(?:_[a-z0-9]+)+(?![\w.])")
HUGE = 123_456_789.123
EACH = [
    pytest.param(view, wording, column, id=f"{view}-{code}")
    for (view, column), wordings in WORDINGS.items()
    for code, wording in wordings.items()
]


def faults(text: str) -> Iterator[str]:
    """What makes a person read a text twice."""
    plain = TIME.sub("time", CODE.sub("code", text))
    for clause in re.split(r"[.;:]\s", plain):
        if len(clause.split()) > MAX_WORDS:
            yield f"{len(clause.split())} words: {clause}"
    outside = re.sub(r"`[^`]*`|kafka-\w+\.sh .*", "code", text)
    yield from (f"{what}: {text}" for what, pattern in FAULTS.items() if pattern.search(outside))
    for name in set(IDENTIFIER.findall(outside)) - KAFKAS:
        yield f"code {name}: {text}"


def with_numbers(row: dict[str, Any], value: float) -> dict[str, Any]:
    is_number = (int, float)
    return {name: value if isinstance(cell, is_number) else cell for name, cell in row.items()}


@pytest.mark.parametrize(("view", "wording", "column"), EACH)
def test_a_template_is_plain_whatever_its_numbers(
    view: str, wording: reasons.Wording, column: str
) -> None:
    row = CASES[f"{view}.{column}"][wording.code].get("row", {})
    for cells in (row, {}, with_numbers(row, 0.0), with_numbers(row, HUGE)):
        unknown = dict.fromkeys((*wording.evidence, *OF_EVERY_ROW)) | {"usage_unit": None}
        unknown |= {"started_at": NOON, "ended_at": NOON}
        text = wording.words(unknown | {column: wording.code} | cells)
        assert [each for each in faults(text) if cells is row or "float" not in each] == []


@pytest.fixture(scope="module")
def page() -> str:
    return sentences.text()


def test_every_sentence_is_short_and_plain(page: str) -> None:
    texts = [line[2:] for line in page.splitlines() if line.startswith("- ")]
    assert [fault for text in texts for fault in faults(text)] == []


def test_the_page_has_every_sentence(page: str) -> None:
    written = (GOLDEN.parents[1] / "docs/sentences.md").read_text(encoding="utf-8")
    assert page == written, "python -m tests.sentences > docs/sentences.md"


@cases(
    ("text", "fault"),
    ("a float of six digits", "it waits 51.9091 bytes/s", "a float"),
    ("an exponent", "it waits 5e-05 s", "a float"),
    ("nothing", "results could not be computed: .", "an empty value"),
    ("a column", "see client_racks", "code client_racks"),
    ("a word", "the alert is past its bound", "a retired word"),
    ("a long sentence", " ".join("x" * 21), "21 words"),
)
def test_a_fault_is_found(text: str, fault: str) -> None:
    assert [each.startswith(fault) for each in faults(text)] == [True]


def test_steps_are_for_causes_and_have_no_full_stop() -> None:
    for code, wording in WORDINGS["client_diagnoses", "cause"].items():
        has_step = code not in {"other_errors", "not_explained"}
        assert (wording.cure is not None) is has_step
        assert not (wording.cure or "").endswith(".")
