"""Levels: each view and answer has rows from the level on that it says, and not before."""

from collections.abc import Collection
from functools import cache
from typing import Any

import pytest

from quotaflow.pipelines.errors import NeverMadeError
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.snapshots.sections import SNAPSHOT_TABLES
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.levels import ADMIN_API, LEVELS, SAMPLED_LOG, TELEMETRY, WHOLE_LOG
from quotaflow.schemas.tables import declared
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_SUBSCRIPTIONS

from .filled_views import FILLED
from .memory_tables import MemoryTables
from .view_tables import make_table, make_tables

_OF_SNAPSHOTS = {table.name for table in SNAPSHOT_TABLES} - {CLIENT_SUBSCRIPTIONS.name}
_OWN = set(list(declared.TABLES)[list(declared.TABLES).index("quarantine") :])
_OF_TOPICS = {
    "ingest_request_log": SAMPLED_LOG,
    "ingest_receiver": TELEMETRY,
    "ingest_otlp": TELEMETRY,
}
_READ_LINES_AS_THEY_ARE = {"client_versions", "clients_without_telemetry"}
"""Views of requests that would mislead if lines were left out, as docs/connect.md says."""
_PICKS_ROWS = {"metric_alerts"}
"""Its rows are those of telemetry in a table that has others before."""
_WAITS_FOR_ALERTS = {"subscription_proposals"}
"""It removes resources of alerts that are closed, so it is computed only where alerts are."""


def least(names: list[str]) -> str:
    return min(names, key=LEVELS.index)


def test_a_table_is_of_the_level_of_what_fills_it() -> None:
    by_table: dict[str, list[str]] = {name: [ADMIN_API] for name in _OF_SNAPSHOTS | _OWN}
    for job in JOBS.values():
        level = _OF_TOPICS.get(job.name) or TABLES[job.reads].level
        for table in job.fills:
            by_table.setdefault(table.name, []).append(level)
    by_table[CLIENT_SUBSCRIPTIONS.name] = [SAMPLED_LOG]
    # A rule may watch rows of any table.
    by_table["metric_alert_events"].append(ADMIN_API)
    expected = {name: least(each) for name, each in by_table.items()}
    assert {name: TABLES[name].level for name in expected} == expected
    assert TABLES.keys() - expected.keys() == {answer.name for answer in ANSWERS}


@cache
def filled(level: str) -> MemoryTables:
    """The rows of every table that a level has; those of producer ids and alerts that it has."""
    tables = MemoryTables()
    has = {name: rows for name, rows in FILLED.items() if _is_in(name, level)}
    if level in {ADMIN_API, TELEMETRY}:
        rates = [row for row in FILLED["producer_id_rates"] if row["kind"] == "activation"]
        has["producer_id_rates"] = rates
    if level == ADMIN_API:
        has["metric_alert_events"] = [r for r in FILLED["metric_alert_events"] if r.get("watched")]
    make_tables(tables, has)
    return tables


def _is_in(table: str, level: str) -> bool:
    return LEVELS.index(TABLES[table].level) <= LEVELS.index(level)


def first_with_rows(names: Collection[str]) -> dict[str, str | None]:
    """By name the first level with rows. Level by level, for an answer is computed once in each."""
    first: dict[str, str | None] = dict.fromkeys(names)
    for level in (ADMIN_API, TELEMETRY, SAMPLED_LOG):
        for name in (name for name in names if first[name] is None):
            if filled(level).rows(f"SELECT 1 FROM {name} LIMIT 1"):
                first[name] = level
    return first


@pytest.mark.faults
def test_an_answer_has_rows_from_the_level_of_its_table_on() -> None:
    actual = first_with_rows([answer.name for answer in ANSWERS])
    # Not every answer has rows of the filled tables: one proposes what others do not.
    without = {name for name, level in actual.items() if level is None}
    assert without <= {answer.name for answer in ANSWERS if answer.table.empty}
    exempt = without | _WAITS_FOR_ALERTS
    expected = {name: TABLES[name].level for name in actual if name not in exempt}
    assert {name: actual[name] for name in expected} == expected


def test_a_view_has_rows_from_the_level_on_that_its_head_says() -> None:
    loaded = views.load()
    actual = first_with_rows(loaded.keys() - _READ_LINES_AS_THEY_ARE)
    actual |= dict.fromkeys(_READ_LINES_AS_THEY_ARE, WHOLE_LOG)
    assert actual == {name: view.level for name, view in loaded.items()}


def test_a_view_reads_a_table_of_its_level_or_says_that_a_sample_would_mislead() -> None:
    for name, view in views.load().items():
        if name in _PICKS_ROWS:
            continue
        read = [TABLES[table].level for table in views.read_by([name])[0]]
        needs = SAMPLED_LOG if view.level == WHOLE_LOG else view.level
        assert needs in read or not read, name


SNAPSHOTS: dict[str, list[dict[str, Any]]] = {
    name: rows for name, rows in FILLED.items() if name in _OF_SNAPSHOTS | {"pipeline_progress"}
}


def test_a_table_above_the_level_of_a_view_may_be_missing(folder_warehouse: Warehouse) -> None:
    for name, rows in SNAPSHOTS.items():
        make_table(folder_warehouse, TABLES[name], rows)
    reader = FolderReader(folder_warehouse)
    assert {row["why_code"] for row in reader.rows("SELECT * FROM protected_principals")} == {"own"}
    assert reader.rows("SELECT * FROM ongoing_moves") != []
    for query in ("SELECT * FROM config_alterations", "SELECT * FROM throttle_changes"):
        # The view before had this table as an empty one.
        with pytest.raises(NeverMadeError, match="config_alterations was never made"):
            reader.rows(query)


def test_a_table_of_the_level_of_a_view_may_not_be_missing(folder_warehouse: Warehouse) -> None:
    make_table(folder_warehouse, TABLES["settings"], FILLED["settings"])
    reader = FolderReader(folder_warehouse)
    with pytest.raises(NeverMadeError, match="configs was never made"):
        reader.rows("SELECT * FROM protected_principals")
