"""Every code of a view has one sentence, which stands on the columns that are its evidence."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
import yaml

from quotaflow.pipelines import reasons
from quotaflow.pipelines.reasons.wording import OF_EVERY_ROW, worded
from quotaflow.pipelines.reference import reasons as reasons_page
from quotaflow.pipelines.results.answers import client_causes
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules import diagnosis, lag_cause

from .. import case_tables
from ..cases import cases
from ..conftest import GOLDEN
from ..delta_tables import NOON

TOKEN = re.compile(r"'[^']*'|[\w.]+|\S")
PLURAL = re.compile(
    r"(?<![\w.,=-])1 (?:new |client |producer )?"
    r"(?!does|fails|gets|has|is|lags|names|reads|says|sends|slows|takes|waits|was)\w+[a-rt-z]s\b"
)
WORDINGS = {place: of_column.by_code for place, of_column in reasons.wordings().items()}

CASES = yaml.safe_load((GOLDEN / "reasons.yaml").read_text(encoding="utf-8"))
"""By view and column, then by code: a row that is the evidence, and its sentence."""
EACH = [
    pytest.param(wording, column, case.get("row", {}), case["text"], id=f"{column}-{code}")
    for (view, column), wordings in WORDINGS.items()
    for code, wording in wordings.items()
    for case in [CASES[f"{view}.{column}"][code]]
]
SIGNALS = {
    signal
    for answer in ANSWERS
    if answer.name.endswith("_proposals")
    for signal in re.findall(r"'(\w+)' AS signal", answer.sql)
}
"""Signals that the evidence of proposals may have."""
HOSTILE = "\x1b[31m\u202e`<b>" + "x" * 5_000


class ReadRow(dict[str, Any]):
    """A row of any columns that remembers which were read."""

    def __init__(self, content: Mapping[str, Any], missing: Any = None) -> None:
        super().__init__(content)
        self.read: set[str] = set()
        self.missing = missing

    def __getitem__(self, column: str) -> Any:
        self.read.add(column)
        return self.get(column, self.missing)


def codes(sql: list[str], column: str) -> set[str]:
    """Values that the CASEs and texts under this name in the queries can give."""
    values: set[str] = set()
    for query in sql:
        tokens = TOKEN.findall(re.sub("--.*", "", query))
        for place, (word, name) in enumerate(pairwise(tokens)):
            if (word.upper(), name) == ("AS", column):
                for value in given(tokens[:place]):
                    values |= values_of(sql, value, column)
    return values


def values_of(sql: list[str], value: str, column: str) -> set[str]:
    """A text itself, or what a column of another name can be."""
    if value.startswith("'"):
        return {value.strip("'")}
    name = value.rpartition(".")[2]
    return set() if name == column else codes(sql, name)


def given(tokens: list[str]) -> Iterator[str]:
    """What the expression that ends here can be: a text, a column, or one of a CASE's branches."""
    if tokens[-1].upper() != "END":
        if re.fullmatch(r"'[^']*'|[a-z][\w.]*", tokens[-1]):
            yield tokens[-1]
        return
    depth = 0
    for place in range(len(tokens) - 1, -1, -1):
        depth += {"END": 1, "CASE": -1}.get(tokens[place].upper(), 0)
        if depth == 0:
            return
        if tokens[place].upper() in {"THEN", "ELSE"} and tokens[place + 1].upper() != "CASE":
            yield tokens[place + 1]


SIGNALS_OF = {
    "desired_configs": SIGNALS,
    "diagnoses": {"client", "first_ms", "failed_requests", "advice_table", "bytes", "lasted_ms"}
    | {"clients_hit", "broker_clients", "rebalances", "stopped_ms", "partitions", "min_in_sync"},
    "cluster_symptoms": {"rebalances", "of_cause", "partition", "leader", "isr"},
    "client_diagnoses": {*client_causes.SIGNALS, *client_causes.FACTS},
    "why_groups_lag": {name for names in lag_cause.SIGNALS.values() for name in names},
}
"""Names of evidence, which sentences read as columns."""
FINDINGS = next(
    column.comment for column in TABLES["throttle_checks"].columns if column.name == "finding"
)
SYMPTOMS = {"slow", "failing", "lag", "move_stalled", "rebalances"}
SYMPTOMS |= {"unavailable", "under_min_isr", "under_replicated"}
OF_RULES = {
    ("why_groups_lag", "cause"): {*lag_cause.CAUSES, lag_cause.UNKNOWN},
    ("client_diagnoses", "cause"): {*diagnosis.CAUSES},
    ("throttle_checks", "finding"): {*re.findall(r"\b[a-z]+_\w+", FINDINGS)}
    - {"throttle_sizing", "stale_throttle_s"},
    ("diagnoses", "symptom"): {*SYMPTOMS, reasons.COST},
    ("incidents", "symptom"): SYMPTOMS,
    ("cluster_symptoms", "cause"): {*WORDINGS["rebalances", "trigger"], "poll_interval"}
    | {"broker_down", "log_dir_down", "follower_behind"},
}
"""Codes that a rule gives, and no SQL."""


@pytest.mark.parametrize(("view", "column"), WORDINGS)
def test_codes_of_a_view_and_codes_with_words_are_the_same(view: str, column: str) -> None:
    texts = {view.name: view.sql for view in views.load().values()}
    texts |= {answer.name: answer.sql for answer in ANSWERS}
    of_plan = ("desired_configs", "proposals", "replication_rate_advice", "producer_id_offenders")
    read = [name for name in texts if name.endswith(of_plan)]
    names = read if view == "desired_configs" else [view]
    of_rule = OF_RULES.get((view, column))
    given_codes = of_rule or codes([texts[name] for name in names], column)
    assert given_codes == WORDINGS[view, column].keys()


def test_every_code_has_a_case() -> None:
    assert {column: cases.keys() for column, cases in CASES.items()} == {
        f"{view}.{column}": wordings.keys() for (view, column), wordings in WORDINGS.items()
    }


@pytest.mark.parametrize(("wording", "column", "row", "text"), EACH)
def test_a_code_and_its_evidence_and_no_more_are_a_sentence(
    wording: reasons.Wording, column: str, row: Mapping[str, Any], text: str
) -> None:
    read = ReadRow({column: wording.code} | dict(row))
    assert wording.words(read) == text
    units = {f"{name}_unit" for name in wording.evidence}
    assert read.read - OF_EVERY_ROW - units <= set(wording.evidence)


@cases(
    ("view", "column", "code", "row", "part"),
    *case_tables.rows(__file__, "a_sentence_claims_what_its_columns_say"),
    (
        "a short burst has a length",
        *("producer_id_bursts", "cause", "unknown"),
        {"started_at": NOON, "ended_at": NOON + timedelta(milliseconds=4)},
        "in 4 ms;",
    ),
)
def test_a_sentence_claims_what_its_columns_say(
    view: str, column: str, code: str, row: dict[str, Any], part: str
) -> None:
    text = WORDINGS[view, column][code].words(ReadRow(row))
    assert part in text
    assert "min.insync" not in text


def test_evidence_is_columns_of_the_view() -> None:
    for (view, _), wordings in WORDINGS.items():
        described = TABLES[view] if view in TABLES else views.load()[view]
        columns = {column.name for column in described.columns}
        columns |= SIGNALS_OF.get(view, set())
        evidence = {(code, name) for code, each in wordings.items() for name in each.evidence}
        assert {(view, code, name) for code, name in evidence if name not in columns} == set()


def test_what_is_not_known_is_worded_too() -> None:
    row = ReadRow({"started_at": NOON, "ended_at": NOON, "reason_code": "headroom"})
    for wordings in WORDINGS.values():
        assert [code for code, wording in wordings.items() if not wording.words(row)] == []


def test_one_of_each_is_no_plural() -> None:
    for (_, column), wordings in WORDINGS.items():
        for code, wording in wordings.items():
            row = {column: code, "reason_code": code, "started_at": NOON, "ended_at": NOON}
            text = wording.words(ReadRow(row, missing=1))
            assert PLURAL.findall(text) == [], text


@pytest.mark.parametrize("code", WORDINGS["desired_configs", "reason_code"])
def test_names_of_clients_are_cut_and_escaped(code: str) -> None:
    names = ("entity_name", "subject", "reason_detail", "bound_unit", "usage_unit")
    row = ReadRow({"reason_code": code} | dict.fromkeys(names, HOSTILE), missing=1)
    text = WORDINGS["desired_configs", "reason_code"][code].words(row)
    assert text.isprintable()
    assert len(text) < 1_000


def test_no_signal_takes_the_place_of_a_column_or_of_an_earlier_signal() -> None:
    signals = [("usage", 1.0), ("throttled_windows", 2.0), ("windows_in_force", 3.0)]
    signals += [("wait_share", 0.5)]
    evidence = [{"signal": name, "value": value, "unit": "%"} for name, value in signals]
    row = {"reason_code": "quota_throttles", "subject": "orders", "evidence": evidence}
    false = [{"signal": name, "value": 9.0, "unit": "?"} for name in ("usage", "reason_code")]
    assert reasons.reason(row | {"evidence": [*evidence, *false]}) == reasons.reason(row)


def test_a_code_of_another_version_is_shown_as_it_is() -> None:
    assert reasons.reason({"reason_code": "new_\x1bcode"}) == r"new_\x1bcode"
    assert reasons.blocked_reason({"blocked_reason": None}) is None


def test_the_page_lists_every_code_with_its_evidence() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*?) \|$", reasons_page.text(), re.M)
    assert [(code, re.findall(r"`(\w+)`", evidence)) for code, _, evidence in rows] == [
        (wording.code, list(wording.evidence))
        for wordings in WORDINGS.values()
        for wording in wordings.values()
    ]


def test_a_row_of_an_older_version_lacks_a_signal_and_has_its_sentence() -> None:
    row = {
        **{"reason_code": "quota_throttles", "throttled_windows": 3, "windows_in_force": 5},
        **{"usage": 20117.66, "usage_unit": "bytes/s"},
    }
    text = worded(("desired_configs", "reason_code"), row)
    assert text.startswith("the quota is too low: it throttled the user in 3 of 5 windows")


@pytest.mark.parametrize(
    ("symptom", "text"),
    [
        ("slow", "the tables do not explain the rest, which may be normal"),
        ("failing", "the tables do not explain the rest of the errors"),
    ],
)
def test_a_rest_repeats_no_share_which_stands_beside_it(symptom: str, text: str) -> None:
    row = {"cause": "not_explained", "symptom": symptom, "share": 0.15, "rank": 2}
    assert worded(("client_diagnoses", "cause"), row) == text
    assert worded(("client_diagnoses", "cause"), {**row, "rank": 1}) == (
        "the tables do not show the cause"
    )
