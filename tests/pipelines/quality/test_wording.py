"""Checks in words: what is expected, what to do, and a query for the rows."""

import re
from collections.abc import Iterator

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.quality import suites, wording
from quotaflow.pipelines.quality.suites import CRITICAL
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...documented_commands import words as arguments

SUITES = suites.load({"max_clock_skew_s": 60, "max_lateness_s": 3_600})
_COMMAND = re.compile(r"`([^`]+)`")
EVERY = [(table, check) for table, checks in SUITES.items() for check in checks]


def test_each_check_is_in_words_of_its_own() -> None:
    for table, check in EVERY:
        words = wording.expected(check)
        assert words, (table, check.name)
        assert not words.endswith(".")
    texts = [(table, wording.expected(check)) for table, check in EVERY]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("table", "name", "words"),
    [
        ("requests", "event_time_not_null", "event_time is never null"),
        ("requests", "max_bytes_not_negative", "max_bytes is never negative"),
        ("quota_usage", "quota_level_known", "quota_level is from 1 to 8"),
        ("traffic", "direction_known", "direction is one of: produced, consumed"),
        ("plans", "reason_not_empty", "the length of reason is at least 1"),
        ("feedback_locks", "key_unique", "no two rows have the same cluster_id"),
        ("rack_traffic", "cross_rack_within_bytes", "bytes is at least cross_rack_bytes"),
    ],
)
def test_a_check_without_a_description_is_worded(table: str, name: str, words: str) -> None:
    assert next(wording.expected(c) for c in SUITES[table] if c.name == name) == words


@pytest.mark.faults
def test_the_rows_of_every_check_can_be_asked_for(warehouse: Warehouse) -> None:
    reader = FolderReader(warehouse).with_empty(frozenset(TABLES))
    for table, check in EVERY:
        assert reader.rows(wording.rows_query(table, check)) == [], (table, check.name)


def test_advice_has_what_to_do_and_a_query() -> None:
    check = next(each for each in SUITES["quota_usage"] if each.name == "usage_not_negative")
    assert wording.advice(TABLES["quota_usage"], check).splitlines() == [
        "quota_usage: usage is never negative",
        "  to do: Compute the rows again: `quotaflow rebuild quota_usage --from 1d`, then "
        "`quotaflow check --table quota_usage --since 1d`. If they are the same, report it. Plans "
        "that need this table wait.",
        "  rows: SELECT * FROM quota_usage WHERE usage < 0 LIMIT 20",
    ]


def commands() -> Iterator[str]:
    for table, check in EVERY:
        for command in _COMMAND.findall(wording.remedy(TABLES[table], check)):
            if command.startswith("quotaflow "):
                yield command


def test_remedies_name_commands_and_what_can_be_rebuilt() -> None:
    from quotaflow.pipelines.maintenance.rebuild import results  # noqa: PLC0415  imports pyspark

    rebuilt = {*results(config.Conf()), "client_metrics"}
    seen = {tuple(arguments(command)) for command in commands()}
    assert {words[1] for words in seen if words[0] == "rebuild"} <= rebuilt
    assert {words[0] for words in seen} == {
        *("rebuild", "check", "run", "backfill", "snapshot", "restore")
    }
    computed = {answer.name for answer in ANSWERS}
    critical = {t: wording.remedy(TABLES[t], c) for t, c in EVERY if c.severity == CRITICAL}
    assert {t for t, remedy in critical.items() if "computes the whole table" in remedy} == computed
