"""Answers are computed when their inputs changed, and only then; errors are kept and shown."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest
from deltalake import DeltaTable

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.folder import FolderSource
from quotaflow.pipelines.results.answers.refresh import not_up_to_date, refresh
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import delta_files
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.answer_head import Lookback
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES

from ....cases import cases
from ....delta_tables import NOON, Fill, violation
from ....rows import HOSTILE, alert, use, used
from ....schemas.views.filled_views import FILLED
from ....schemas.views.view_tables import make_inputs, no_session, temporary_folder

LATER = NOON + timedelta(seconds=1)
NOW = NOON + timedelta(days=1)
BY_NAME = {answer.name: answer for answer in ANSWERS}
BROKEN = "SELECT no_column FROM producer_id_uses"


def refreshed(
    warehouse: Warehouse,
    answers: tuple[Answer, ...] = ANSWERS,
    now: datetime = NOW,
    report: Callable[[str], None] = pytest.fail,
) -> set[str]:
    return set(refresh(warehouse.conf, no_session, now, report, answers))


def versions(warehouse: Warehouse) -> dict[str, int]:
    made = (name for name in TABLES if warehouse.place.is_made(name))
    return {name: DeltaTable(warehouse.folder(name)).version() for name in made}


def stored(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    return FolderReader(warehouse).rows(f"SELECT * FROM {name}")


def make_refreshed(warehouse: Warehouse) -> None:
    """Filled tables with all answers, computed once for all tests."""
    shutil.copytree(_refreshed(), warehouse.conf.folder, dirs_exist_ok=True)


@cache
def _refreshed() -> Path:
    folder = temporary_folder()
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_inputs(warehouse, FILLED)
    refreshed(warehouse)
    return folder


def errors(warehouse: Warehouse) -> dict[str, str]:
    rows = stored(warehouse, "answer_state")
    return {row["answer"]: row["error"] for row in rows if row["error"]}


def broken(name: str) -> tuple[Answer, ...]:
    """All answers, one of them with a text that cannot be computed."""
    return tuple(replace(a, sql=BROKEN) if a.name == name else a for a in ANSWERS)


def test_every_answer_of_filled_tables_has_rows(warehouse: Warehouse) -> None:
    make_refreshed(warehouse)
    # Its cluster takes no producer_ids_rate: views/test_default_quota.py has one that does.
    assert [name for name in BY_NAME if not stored(warehouse, name)] == ["default_quota_proposals"]


@pytest.mark.faults
def test_a_second_refresh_writes_nothing(warehouse: Warehouse) -> None:
    make_inputs(warehouse, FILLED)
    assert refreshed(warehouse) == BY_NAME.keys()
    before = versions(warehouse)
    assert refreshed(warehouse) == set()
    assert versions(warehouse) == before


def test_without_tables_nothing_is_made(warehouse: Warehouse) -> None:
    assert refreshed(warehouse) == set()
    assert versions(warehouse) == {}


def test_an_answer_waits_for_all_its_inputs(warehouse: Warehouse, fill: Fill) -> None:
    fill("quota_usage", [used(0, "producer_byte_rate", 1.0)])
    fill("producer_id_uses", [])
    assert refreshed(warehouse) == {"producer_id_bursts", "quota_baselines"}


@cases(
    ("table", "row", "changed"),
    (
        "rows that are the same are not written",
        "producer_id_uses",
        use(500, 900, principal="User:new"),
        set(),
    ),
    (
        "one that nothing else reads",
        "producer_id_rates",
        violation("User:" + HOSTILE, LATER),
        {"recent_violations"},
    ),
    (
        "with the one that reads it",
        "quota_usage",
        used(30, "producer_byte_rate", 7.0, principal="User:new"),
        {"quota_advice", "quota_baselines", "quota_proposals"},
    ),
)
def test_an_input_changes_only_what_depends_on_it(
    warehouse: Warehouse, fill: Fill, table: str, row: dict[str, Any], changed: set[str]
) -> None:
    make_refreshed(warehouse)
    before = {each["answer"]: each["event_time"] for each in stored(warehouse, "answer_state")}
    fill(table, [row])
    assert refreshed(warehouse, now=NOW + timedelta(minutes=1)) == changed
    after = {each["answer"]: each["event_time"] for each in stored(warehouse, "answer_state")}
    computed = {name for name in after if after[name] != before[name]}
    reads = {name for name, answer in BY_NAME.items() if table in answer.inputs}
    assert computed == reads | {
        name for name, answer in BY_NAME.items() if changed & set(answer.inputs)
    }


def test_another_text_computes_again(warehouse: Warehouse, fill: Fill) -> None:
    fill("producer_id_uses", [])
    answer = BY_NAME["producer_id_bursts"]
    assert refreshed(warehouse, (answer,)) == {"producer_id_bursts"}
    changed = replace(answer, sql=f"SELECT * FROM ({answer.sql}) AS same")
    assert changed.fingerprint != answer.fingerprint
    assert refreshed(warehouse, (changed,), NOW + timedelta(minutes=1)) == set()
    (state,) = stored(warehouse, "answer_state")
    assert state["fingerprint"] == changed.fingerprint


def test_a_table_is_brought_up_to_date_by_the_first_refresh_that_computes_it(
    warehouse: Warehouse, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensured: list[str] = []

    def ensure(self: Warehouse, open_session: OpenSession, tables: list[Table]) -> None:
        ensured.extend(table.name for table in tables)
        of_warehouse(self, open_session, tables)

    def fails(*_: object) -> NoReturn:
        raise JobError("planted")

    of_warehouse = Warehouse.ensure
    answer = BY_NAME["producer_id_bursts"]
    fill("producer_id_uses", [])
    refreshed(warehouse, (answer,))
    shutil.rmtree(warehouse.folder("answer_state"))
    monkeypatch.setattr(Warehouse, "ensure", ensure)
    with monkeypatch.context() as failing:
        failing.setattr(FolderSource, "compute", fails)
        refreshed(warehouse, (answer,), report=lambda _: None)
    assert answer.name not in ensured
    refreshed(warehouse, (answer,))
    assert ensured.count(answer.name) == 1
    for producer_id in (1, 2):
        fill("producer_id_uses", [use(9, producer_id)])
        refreshed(warehouse, (answer,))
    assert ensured.count(answer.name) == 1


def test_an_answer_that_fails_keeps_its_rows_and_the_others_go_on(
    warehouse: Warehouse, fill: Fill
) -> None:
    make_refreshed(warehouse)
    rows = stored(warehouse, "producer_id_bursts")
    fill("producer_id_uses", [use(9, 77, principal="User:new")])
    fill("quota_usage", [used(30, "producer_byte_rate", 7.0, principal="User:new")])
    reports: list[str] = []
    changed = refreshed(warehouse, broken("producer_id_bursts"), report=reports.append)
    assert changed == {"quota_advice", "quota_baselines", "quota_proposals"}
    (line,) = reports
    assert line.startswith("producer_id_bursts is not up to date: Binder Error")
    assert stored(warehouse, "producer_id_bursts") == rows
    assert errors(warehouse).keys() == {"producer_id_bursts"}
    before = versions(warehouse)
    assert refreshed(warehouse, broken("producer_id_bursts"), report=reports.append) == set()
    assert versions(warehouse) == before
    refreshed(warehouse)
    assert errors(warehouse) == {}


def test_after_a_crash_before_the_state_the_same_rows_are_not_written_again(
    warehouse: Warehouse, fill: Fill
) -> None:
    make_refreshed(warehouse)
    fill("producer_id_rates", [violation("User:" + HOSTILE, LATER)])
    before = versions(warehouse)["answer_state"]
    assert refreshed(warehouse) == {"recent_violations"}
    DeltaTable(warehouse.folder("answer_state")).restore(before)
    assert refreshed(warehouse) == set()
    assert (
        not_up_to_date(
            warehouse.conf, no_session, NOW + timedelta(days=9), timedelta(0), {"recent_violations"}
        )
        == {}
    )


def test_rows_that_others_changed_are_computed_again(warehouse: Warehouse) -> None:
    make_refreshed(warehouse)
    DeltaTable(warehouse.folder("producer_id_bursts")).delete()
    assert refreshed(warehouse) == {"producer_id_bursts"}


@pytest.mark.faults
def test_an_alert_that_closes_by_itself_ends_its_proposal(warehouse: Warehouse) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    events = [row for row in FILLED["metric_alert_events"] if row["alert_id"] != "b"]
    subscribing = {"alert_id": "c", "client_instance_id": "i3", "subscribe_metrics": "a."}
    subscribing |= {"subscribe_interval_ms": 10_000, "bound": 5e3}
    events += [alert(200, "opened", **subscribing)]
    events += [alert(0, "closed", reason="stale", **subscribing) | {"event_time": soon}]
    make_inputs(warehouse, FILLED | {"metric_alert_events": events})
    refreshed(warehouse)
    (state,) = (
        row
        for row in stored(warehouse, "answer_state")
        if row["answer"] == "subscription_proposals"
    )
    assert state["expires_at"] == soon
    names = {"subscription_proposals"}
    at_once, later = soon - timedelta(seconds=1), soon + timedelta(seconds=1)
    assert not_up_to_date(warehouse.conf, no_session, at_once, timedelta(0), names) == {}
    assert not_up_to_date(warehouse.conf, no_session, later, timedelta(0), names).keys() == names


@pytest.mark.parametrize("small_bytes", [0, 2**20], ids=["from files", "in memory"])
@pytest.mark.parametrize("days", [0, 30, 400])
def test_only_rows_of_the_lookback_are_read(
    warehouse: Warehouse, fill: Fill, monkeypatch: pytest.MonkeyPatch, days: int, small_bytes: int
) -> None:
    monkeypatch.setattr(delta_files, "_SMALL_BYTES", small_bytes)
    fill("settings", [])
    for name in ("config_changes", "config_alterations", "client_quotas", "fetch_sizes"):
        fill(name, [])
    fill("quota_usage", [used(0, "producer_byte_rate", 1.0)])
    fill("quota_usage", [used(-86_400 * days - 1, "producer_byte_rate", 9.0)])
    answer = replace(
        BY_NAME["quota_advice"],
        sql="""
            SELECT *, CAST(n AS STRING) AS user, since AS until
            FROM (
                SELECT
                    'c1' AS cluster_id, count(*) AS n, min(event_time) AS since,
                    '' AS quota_type, '' AS advice, 0e0 AS recommended, 0e0 AS quota,
                    0 AS quota_level, 0e0 AS percentile_usage, 0e0 AS peak_usage, 0 AS windows,
                    0 AS windows_in_force, 0 AS throttled_windows, 0 AS over_windows,
                    false AS is_sampled, min(event_time) AS altered_at
                FROM quota_usage
            ) AS counted
        """,
        lookbacks={"quota_usage": Lookback(timedelta(days=7), "quotas.advice_days")},
    )
    assert refreshed(warehouse, (answer,)) == {"quota_advice"}
    (row,) = stored(warehouse, "quota_advice")
    assert row["user"] == ("2" if days == 0 else "1")


def test_a_clock_that_is_ahead_hides_no_rows(warehouse: Warehouse, fill: Fill) -> None:
    uses = [use(n / 4, n, principal="User:a") for n in range(12)]
    fill("producer_id_uses", uses)
    fill("producer_id_uses", [use(1e9, 99, principal="User:b")])
    refreshed(warehouse, (BY_NAME["producer_id_bursts"],))
    assert stored(warehouse, "producer_id_bursts") == []
    answer = replace(BY_NAME["producer_id_bursts"], sql=_without_newest())
    refreshed(warehouse, (answer,))
    assert [row["ids"] for row in stored(warehouse, "producer_id_bursts")] == [12]


def _without_newest() -> str:
    """The text, with the newest use of a principal without a wrong clock."""
    sql = BY_NAME["producer_id_bursts"].sql
    return sql.replace(
        "    FROM producer_id_uses\n    GROUP BY cluster_id\n",
        "    FROM producer_id_uses\n    WHERE principal = 'User:a'\n    GROUP BY cluster_id\n",
    )


@cases(
    ("after", "is_usable"),
    ("young enough", timedelta(seconds=899), True),
    ("too old", timedelta(seconds=901), False),
)
def test_an_answer_of_old_inputs_must_not_be_relied_on(
    warehouse: Warehouse, fill: Fill, after: timedelta, is_usable: bool
) -> None:
    make_refreshed(warehouse)
    later, age = NOW + after, timedelta(seconds=900)
    names = {"quota_proposals"}
    assert not_up_to_date(warehouse.conf, no_session, later, age, names) == {}
    fill("quota_usage", [used(30, "producer_byte_rate", 7.0, principal="User:new")])
    problems = not_up_to_date(warehouse.conf, no_session, later, age, names)
    expected = (
        "client_diagnoses was computed at 2026-11-22 12:00:00 UTC, and its inputs changed since: "
        "run quotaflow run first"
    )
    assert problems == ({} if is_usable else {"quota_proposals": expected})


@pytest.mark.faults
def test_an_answer_rests_on_those_it_reads(warehouse: Warehouse) -> None:
    make_inputs(warehouse, FILLED)
    refreshed(warehouse, broken("producer_id_bursts"), report=lambda _: None)
    problems = not_up_to_date(
        warehouse.conf, no_session, NOW, timedelta(days=1), {"recent_violations", "quota_advice"}
    )
    assert problems.keys() == {"recent_violations"}
