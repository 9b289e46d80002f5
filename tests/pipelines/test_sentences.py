"""What people read: short sentences, in plain words, with numbers as a person reads them."""

import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import groups, producer_ids
from quotaflow.pipelines.reasons.wording import OF_EVERY_ROW
from quotaflow.pipelines.report import section
from quotaflow.pipelines.terminal import texts

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
        r"\b(held|holds|past|fits?|binds?|bounds?|asked|anew|tells?|most of the time)\b"
    ),
    "a float of more than three digits": re.compile(
        r"\b(?=[\d.]{5,})[1-9]\d*\.\d+(?![\d.]*\.)|\b\d+(?:\.\d+)?e[+-]?\d+\b"
    ),
    "an empty value": re.compile(r"\b(None|nan|NaN|inf)\b|: ?\.$|\(\)|(^|\s)-([\s;:,.]|$)"),
    "no answer": re.compile(r"^(Nothing|None)( found)?\.$"),
    "1 of many": re.compile(
        r"(?<![\w.,=-])(?<!broker )(?<!partition )1 (?:\w+ )?"
        r"(?!does|fails|gets|has|is|lags|ms|s\b|lacks|sends|takes|waits|was|rebalances)[a-z]*[a-rt-z]s(/s)?\b"
    ),
    "thousands without a comma": re.compile(
        r"(?<![\w.,:=/@-])(?<!now )(?<!to )\d{4,}\b(?![.:-]\d)"
    ),
}
IDENTIFIER = re.compile(r"(?<![\w.])[a-z]+(?:_[a-z0-9]+)+(?![\w.])")
HUGE = 123_456_789.123
_AS_IT_IS = {
    *re.findall(
        r"\{([a-z_]+)(?::0)?\}",
        (resources.files(reasons) / "reasons.yaml").read_text(encoding="utf-8"),
    ),
    "partition",
}
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
    """The row with this value in place of each quantity; ids and values of configs remain."""
    quantities = [name for name, cell in row.items() if isinstance(cell, int | float)]
    return row | dict.fromkeys((name for name in quantities if name not in _AS_IT_IS), value)


@pytest.mark.parametrize(("view", "wording", "column"), EACH)
def test_a_template_is_plain_whatever_its_numbers(
    view: str, wording: reasons.Wording, column: str
) -> None:
    row = CASES[f"{view}.{column}"][wording.code].get("row", {})
    for cells in (row, {}, with_numbers(row, 0.0), with_numbers(row, HUGE)):
        unknown = dict.fromkeys((*wording.evidence, *OF_EVERY_ROW)) | {"usage_unit": None}
        unknown |= {"started_at": NOON, "ended_at": NOON}
        text = wording.words(unknown | {column: wording.code} | cells)
        assert [*faults(text)] == []


@pytest.mark.parametrize(("view", "wording", "column"), EACH)
def test_a_meaning_is_plain(view: str, wording: reasons.Wording, column: str) -> None:
    meaning = [each for each in faults(wording.meaning) if not each.startswith("code")]
    cure = re.sub(r"\{\w+(:\w+)?\}", "a cell", wording.cure or "")
    assert [*meaning, *faults(cure)] == [], (view, column)


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
    ("a word", "the alert is past its limit", "a retired word"),
    ("a dash", "plan 3f waits, frozen by -; see it", "an empty value"),
    ("no sentence", "Nothing.", "no answer"),
    ("one of many", "its clients used 1 partitions/s", "1 of many"),
    ("thousands", "5000 records are left", "thousands without a comma"),
    ("a long sentence", " ".join("x" * 21), "21 words"),
)
def test_a_fault_is_found(text: str, fault: str) -> None:
    assert [each.startswith(fault) for each in faults(text)] == [True]


def test_steps_are_for_causes_and_have_no_full_stop() -> None:
    for code, wording in WORDINGS["client_diagnoses", "cause"].items():
        has_step = code != "not_explained"
        assert (wording.cure is not None) is has_step
        assert not (wording.cure or "").endswith(".")


def test_a_cause_is_said_of_the_first_alone() -> None:
    rows = [{"principal": f"User:{name}", "cause": "restart_loop"} for name in ("a", "b")]
    assert producer_ids.ACCUSED.summary(rows) == (
        "User:a took too many producer ids: the clients restart again and again, or a loop "
        "connects. User:b also took too many."
    )
    lags = [{"group_id": name, "cause": "unknown"} for name in ("g", "h", "g")]
    summary = groups.FALLS_BEHIND.summary(lags)
    assert (
        summary == "The lag of g grows: the tables do not show the cause. The lag of h also grows."
    )


def test_a_missing_client_id_leaves_no_gap() -> None:
    row = {"principal": "User:m", "source": " at 10.0.0.5", "source_ids": 3, "cause": None}
    assert reasons.accused_burst(row).startswith("User:m at 10.0.0.5 took 3 producer ids; ")
    named = row | {"source": "a as  at b at 10.0.0.5", "cause": "of_2027"}
    assert reasons.accused_burst(named).startswith(
        "User:m as a as  at b at 10.0.0.5 took 3 producer ids; of_2027; "
    )


@cases(
    ("code", "text"),
    ("none", None, ""),
    ("one", "restart_loop", "the clients restart again and again, or a loop connects"),
    ("of a newer version", "of_2027", "of_2027"),
)
def test_a_list_shows_what_a_code_means_or_the_code(code: str | None, text: str) -> None:
    assert section.code("cause", "producer_id_bursts", "cause").show({"cause": code}) == text


@cases(
    ("made", "expected"),
    ("one", texts.with_unit(1.0, "partitions/s"), "1 partition/s"),
    ("one of a process", texts.with_unit(1.0, "process/s"), "1 process/s"),
    ("two", texts.with_unit(2.0, "partitions/s"), "2 partitions/s"),
    ("a name of Kafka", texts.step("producer_byte_rate is low"), "producer_byte_rate is low."),
    ("a step", texts.step("raise it"), "Raise it."),
    ("no step", texts.to_do([]), "No step is needed."),
    ("a name in a shell", texts.why("a b"), "quotaflow why 'a b'"),
)
def test_words_are_made_once(made: str, expected: str) -> None:
    assert made == expected
