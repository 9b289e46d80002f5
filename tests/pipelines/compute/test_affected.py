"""What new facts affect, and how little of them is read to know it."""

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines.compute.affected import Arrival, by_result, counting
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts import fetches
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import STRING, TIMESTAMP, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import FETCHES, REQUESTS
from quotaflow.udfs.engine.arrivals import ARRIVALS
from quotaflow.udfs.engine.rule import Rule

from ...delta_tables import NOON

LATENESS_S = 3_600
FEW = {"cluster_id", "event_time", "record_time"}


def result(table: Table, bucket_s: int, relevant: str = "true") -> Result:
    rule = Rule(table.name, "SELECT 1", table.arrow)
    return Result(table, REQUESTS, bucket_s, 0, rule=rule, relevant=relevant)


RESULTS = (result(TABLES["traffic"], 60, "api = 'PRODUCE'"), result(TABLES["quota_usage"], 11))


def arrived(results: tuple[Result, ...], facts: pa.Table) -> dict[str, list[Arrival]]:
    columns, count = counting(results, facts.column_names, LATENESS_S)
    # Two batches, of which each worker counts its own.
    batches = facts.select(columns).to_batches(max_chunksize=2)
    return by_result(pa.Table.from_batches(count(iter(batches)), ARRIVALS))


def request(at_s: float | None, api: str | None, delay_s: int = 0) -> dict[str, Any]:
    time = None if at_s is None else NOON + timedelta(seconds=at_s)
    return {
        "cluster_id": "c",
        "event_time": time,
        "record_time": (time or NOON) + timedelta(seconds=delay_s),
        "api": api,
    }


def test_a_fact_affects_its_bucket_of_each_result_that_reads_it() -> None:
    facts = [
        request(0, "PRODUCE"),
        request(59.9, "PRODUCE", LATENESS_S),
        request(-1, "FETCH"),
        request(1, None),
        request(2, "PRODUCE", LATENESS_S + 1),
        request(None, "PRODUCE"),
    ]
    rows = arrived(RESULTS, pa.Table.from_pylist(facts, schema=REQUESTS.arrow))

    def arrivals_of(name: str) -> list[tuple[Any, ...]]:
        at_s = lambda time: time and (time.astimezone(UTC) - NOON).total_seconds()  # noqa: E731
        counts = [(at_s(row.bucket), row.rows, row.is_late, at_s(row.latest)) for row in rows[name]]
        return sorted(counts, key=str)

    assert arrivals_of("traffic") == [(0.0, 2, False, 59.9), (None, 1, True, 2.0)]
    # Buckets are cut from 1970 on: noon of that day is 5 s into one of 11 s.
    start_s = -(NOON.timestamp() % 11)
    assert arrivals_of("quota_usage") == sorted(
        [
            (start_s, 3, False, 1.0),
            (start_s + 11 * ((59.9 - start_s) // 11), 1, False, 59.9),
            (None, 1, True, 2.0),
        ],
        key=str,
    )


def test_facts_without_a_record_are_never_late() -> None:
    schema = pa.schema([("cluster_id", STRING), ("event_time", TIMESTAMP)])
    facts = pa.Table.from_pylist([{"cluster_id": "c", "event_time": NOON}], schema=schema)
    (arrival,) = arrived(RESULTS[1:], facts)["quota_usage"]
    assert (arrival.is_late, arrival.rows) == (False, 1)


def read(frame: DataFrame) -> dict[str, str]:
    """The columns that a scan of a table reads for this frame, with their types."""
    plan = frame._jdf.queryExecution().sparkPlan()  # type: ignore[attr-defined]
    scan = plan.collectLeaves().head().output()
    columns = (scan.apply(n) for n in range(scan.size()))
    return {column.name(): column.dataType().simpleString() for column in columns}


@pytest.fixture
def stored(spark: SparkSession, warehouse: Warehouse) -> Callable[[Table], DataFrame]:
    def empty(table: Table) -> DataFrame:
        warehouse.ensure(lambda: spark, [table])
        return warehouse.read(spark, table.name)

    return empty


@pytest.mark.parametrize(
    ("job", "table", "others"),
    [
        (
            "request_results",
            REQUESTS,
            {
                *("api", "client_address", "error_code", "group_id"),
                *("principal", "producer_id", "replica_id"),
            },
        ),
        ("fetch_results", FETCHES, {"replica_id"}),
    ],
)
def test_few_columns_say_what_new_facts_affect(job: str, table: Table, others: set[str]) -> None:
    results = JOBS[job].results
    assert results
    columns, _ = counting(results(Conf()), table.column_names, LATENESS_S)
    assert set(columns) == FEW | others


@pytest.mark.spark
def test_of_requests_a_walk_over_sessions_reads_no_body(
    stored: Callable[[Table], DataFrame],
) -> None:
    columns = read(fetches.lines(stored(REQUESTS)))
    assert "partitions" in columns
    assert not {"body", "acks", "producer_id"} & columns.keys()
