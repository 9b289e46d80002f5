"""Several results on the same facts: one that fails, and what they look up."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from quotaflow.pipelines import config
from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.compute.engine import RuleError
from quotaflow.pipelines.compute.lookup_changes import LookupChanges
from quotaflow.pipelines.compute.maintainer import levels
from quotaflow.pipelines.compute.result import LookupTable, Result
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import DATE, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CONFIGS, PIPELINE_PROGRESS, REQUESTS
from quotaflow.udfs.engine.rule import Rule

from ...delta_tables import NOON
from .maintained import NO_SPARK, Maintained

CONFIG_AT_MINUTE = """
WITH minutes AS (
    SELECT floored(event_time, 60) AS event_time, count(*) AS requests FROM requests GROUP BY ALL
),
seen AS (
    SELECT if($reaches_back, since_of(event_time, min(event_time) OVER ()), event_time) AS since,
        config_value
    FROM configs
)
SELECT
    CAST(m.event_time AS DATE) AS event_date, m.event_time, m.requests,
    max_by(config_value, since) AS config
FROM minutes m LEFT JOIN seen ON since <= m.event_time
GROUP BY ALL
"""
BROKEN = "SELECT event_date, event_time, requests, error('no such rule') AS config FROM ({})"


def result_table(name: str) -> Table:
    return Table(
        name=name,
        comment="Requests per minute, and the config that is valid",
        columns=(
            Column("event_date", DATE, "UTC date"),
            Column("event_time", TIMESTAMP, "minute"),
            Column("requests", LONG, "requests of the minute"),
            Column("config", STRING, "the newest value set before the minute"),
        ),
        key=("event_time",),
        time="event_time",
        partitioning=("event_date",),
    )


def result(name: str, *, is_broken: bool = False, reaches_back: bool = False) -> Result:
    table = result_table(name)
    sql = BROKEN.format(CONFIG_AT_MINUTE) if is_broken else CONFIG_AT_MINUTE
    return Result(
        table=table,
        rule=Rule(name, sql, table.arrow, parameters={"reaches_back": reaches_back}),
        facts=REQUESTS,
        bucket_s=60,
        lookback_s=0,
        lookups=(LookupTable(CONFIGS, reaches_back=reaches_back),),
    )


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


class Query:
    """A query of results over a warehouse of its own."""

    def __init__(self, folder: Path, *results: Result) -> None:
        self.under = Maintained.make(folder, *results, conf=config.Conf())
        self.batches = 0

    def replace_rules(self, *results: Result) -> None:
        """Go on with other rules for the same tables."""
        self.under = replace(self.under, results=results)

    def requests_at(self, *minutes: int) -> None:
        rows = [{"cluster_id": "c", "event_time": minute(n)} for n in minutes]
        self._batch(self.under.arrive([row | {"record_time": row["event_time"]} for row in rows]))

    def again(self, *minutes: int) -> None:
        """A batch of requests that are in the table already."""
        rows = [{"cluster_id": "c", "event_time": minute(n)} for n in minutes]
        recorded = [row | {"record_time": row["event_time"]} for row in rows]
        self._batch(pa.Table.from_pylist(recorded, schema=REQUESTS.arrow))

    def _batch(self, facts: pa.Table) -> None:
        self.under.keep(facts, self.batches)
        self.batches += 1

    def set_config(self, number: int, value: str) -> None:
        row = {"cluster_id": "c", "event_time": minute(number), "config_value": value}
        self.under.append(CONFIGS, [row | {"is_removed": False}])

    def refresh(self) -> None:
        self.under.refresh(1_000)

    def rows(self, name: str) -> list[tuple[int, int, str | None]]:
        start = NOON.replace(tzinfo=None)
        rows = sorted(self.under.table(name), key=lambda row: row[1])
        return [((row[1] - start) // timedelta(minutes=1), row[2], row[3]) for row in rows]

    def files(self, name: str) -> set[str]:
        return set(DeltaTable(self.under.warehouse.folder(name)).file_uris())

    def state_lines(self) -> list[str]:
        return result_state.not_up_to_date(self.under.warehouse.checkpoint("job"))

    def counts(self, outcome: str) -> list[tuple[Any, ...]]:
        names = PIPELINE_PROGRESS.column_names
        rows = [dict(zip(names, r, strict=True)) for r in self.under.table("pipeline_progress")]
        counted = [row for row in rows if row["outcome"] == outcome]
        return sorted((row["batch_id"], row["target"], row["row_count"]) for row in counted)


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Query]:
    def make(*results: Result) -> Query:
        for each in results:
            monkeypatch.setitem(TABLES, each.table.name, each.table)
        return Query(tmp_path, *results)

    return make


def test_a_result_that_fails_is_reported_and_computed_again_while_the_others_go_on(
    query: Callable[..., Query],
) -> None:
    under = query(result("good"), result("bad", is_broken=True))
    under.requests_at(0, 5)
    assert under.rows("good") == [(0, 1, None), (5, 1, None)]
    assert under.rows("bad") == []
    (line,) = under.state_lines()
    assert line.startswith("bad is not up to date since 2026-11-21 12:00:00 UTC")
    assert "no such rule" in line
    assert under.counts("failed") == [(0, "bad", 2)]

    under.replace_rules(result("good"), result("bad"))
    under.requests_at(9)
    assert under.rows("bad") == under.rows("good") == [(0, 1, None), (5, 1, None), (9, 1, None)]
    assert under.state_lines() == []


def test_a_new_row_of_a_lookup_table_affects_all_rows_since_it_is_valid(
    query: Callable[..., Query],
) -> None:
    under = query(result("good"))
    under.requests_at(0, 5, 7)
    under.set_config(4, "x")
    assert under.rows("good")[1:] == [(5, 1, None), (7, 1, None)]
    under.requests_at(1)
    assert under.rows("good") == [(0, 1, None), (1, 1, None), (5, 1, "x"), (7, 1, "x")]
    under.set_config(6, "y")
    under.refresh()
    assert under.rows("good")[2:] == [(5, 1, "x"), (7, 1, "y")]
    before = under.files("good")
    under.refresh()
    assert under.files("good") == before, "a lookup row that was seen affects nothing again"


def test_the_first_rows_of_a_lookup_table_may_be_valid_for_all_time_before(
    query: Callable[..., Query],
) -> None:
    under = query(result("good", reaches_back=True))
    under.requests_at(0, 5)
    under.set_config(4, "x")
    under.refresh()
    assert under.rows("good") == [(0, 1, "x"), (5, 1, "x")]
    under.set_config(5, "y")
    under.requests_at(7)
    assert under.rows("good") == [(0, 1, "x"), (5, 1, "y"), (7, 1, "y")]


def test_a_replay_reads_lookup_rows_that_came_since(query: Callable[..., Query]) -> None:
    under = query(result("good", reaches_back=True))
    under.requests_at(0)
    checkpoint = under.under.warehouse.checkpoint("job")
    remembered = result_state.load(checkpoint)
    under.requests_at(5)
    under.set_config(4, "x")
    # Killed when it had replaced rows, before it remembered anything.
    result_state.save(checkpoint, remembered)
    under.batches = 1
    under.again(5)
    assert under.rows("good") == [(0, 1, "x"), (5, 1, "x")]


def looking_up(other: Result) -> Result:
    reader = result("reader")
    return replace(reader, lookups=(*reader.lookups, LookupTable(other.table, valid_from=None)))


def test_a_result_that_looks_up_a_failed_one_is_computed_again_with_it(
    query: Callable[..., Query],
) -> None:
    bad, good = result("bad", is_broken=True), result("bad")
    under = query(bad, looking_up(bad), result("other"))
    under.requests_at(0)
    assert [line.split(" ")[0] for line in under.state_lines()] == ["bad", "reader"]
    assert "it looks up bad, which failed" in under.state_lines()[1]
    before = under.files("reader")
    under.replace_rules(good, looking_up(good), result("other"))
    under.requests_at(9)
    assert under.state_lines() == []
    assert not before & under.files("reader")


def test_a_result_is_computed_after_those_it_looks_up() -> None:
    first, other = result("bad"), result("other")
    reader = looking_up(first)
    names = [[each.table.name for each in level] for level in levels([reader, first, other])]
    assert names == [["bad", "other"], ["reader"]]


def test_a_batch_fails_when_every_rule_does(query: Callable[..., Query]) -> None:
    with pytest.raises(RuleError, match="no such rule"):
        query(result("bad", is_broken=True)).requests_at(0)


def test_a_catalog_needs_no_folder_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise ConfigError("no home")

    monkeypatch.setattr("quotaflow.pipelines.config.runtime.home", no_home)
    conf = config.WarehouseSection(catalog_schema="a.b", checkpoints="/Volumes/x")
    changes = LookupChanges.open(NO_SPARK, Batch(Warehouse(conf), "job", "query", 0))
    assert changes.relations is None
