"""What new facts mean to results, and how little of them is read to know it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.facts import fetches
from quotaflow.pipelines.incremental.affected import arrivals, by_result
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.quotas import QUOTA_USAGE
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.traffic import TRAFFIC

pytestmark = pytest.mark.spark

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATENESS_S = 3_600
FEW = {"cluster_id", "event_time", "record_time"}


def result(table: Table, bucket_s: int, concerns: Callable[[], Column] | None = None) -> Result:
    return Result(
        table=table,
        facts=REQUESTS,
        bucket_s=bucket_s,
        lookback_s=0,
        prepare=lambda facts: facts,
        compute=lambda inputs: inputs.facts,
        is_relevant=concerns,
    )


def is_produce() -> Column:
    return F.col("api") == "PRODUCE"


RESULTS = (result(TRAFFIC, 60, is_produce), result(QUOTA_USAGE, 11))


def request(at_s: float | None, api: str | None, delay_s: int = 0) -> dict[str, Any]:
    time = None if at_s is None else NOON + timedelta(seconds=at_s)
    return {
        "cluster_id": "c",
        "event_time": time,
        "record_time": (time or NOON) + timedelta(seconds=delay_s),
        "api": api,
    }


def test_a_fact_touches_the_bucket_it_is_in_of_each_result_it_concerns(spark: SparkSession) -> None:
    facts = [
        request(0, "PRODUCE"),
        request(59.9, "PRODUCE", LATENESS_S),
        request(-1, "FETCH"),
        request(1, None),
        request(2, "PRODUCE", LATENESS_S + 1),
        request(None, "PRODUCE"),
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(facts, schema=REQUESTS.arrow))
    rows = by_result(arrivals(RESULTS, frame, LATENESS_S))

    def arrivals_of(name: str) -> list[tuple[Any, ...]]:
        at_s = lambda time: time and (time.astimezone(UTC) - NOON).total_seconds()  # noqa: E731
        arrived = [
            (at_s(row["bucket"]), row["rows"], row["is_late"], at_s(row["latest"]))
            for row in rows[name]
        ]
        return sorted(arrived, key=str)

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


def test_facts_that_no_record_told_are_never_late(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("c", NOON)], "cluster_id STRING, event_time TIMESTAMP")
    (row,) = by_result(arrivals(RESULTS[1:], frame, LATENESS_S))["quota_usage"]
    assert (row["is_late"], row["rows"]) == (False, 1)


def read(frame: DataFrame) -> dict[str, str]:
    """The columns that a scan of a table reads for this frame, with their types."""
    plan = frame._jdf.queryExecution().sparkPlan()  # type: ignore[attr-defined]
    scan = plan.collectLeaves().head().output()
    columns = (scan.apply(n) for n in range(scan.size()))
    return {column.name(): column.dataType().simpleString() for column in columns}


@pytest.fixture
def stored(spark: SparkSession, warehouse: Warehouse) -> Callable[[Table], DataFrame]:
    def empty(table: Table) -> DataFrame:
        warehouse.ensure(spark, [table])
        return warehouse.read(spark, table.name)

    return empty


@pytest.mark.parametrize(
    ("job", "table", "others", "of_partitions"),
    [
        (
            "request_results",
            REQUESTS,
            {"api", "error_code", "principal", "producer_id", "replica_id", "partitions"},
            {"bytes"},
        ),
        (
            "fetch_results",
            FETCHES,
            {"replica_id", "partitions"},
            {"partition", "error_code", "fetch_offset", "high_watermark"},
        ),
    ],
)
def test_what_came_is_known_from_few_columns(
    stored: Callable[[Table], DataFrame],
    job: str,
    table: Table,
    others: set[str],
    of_partitions: set[str],
) -> None:
    results = JOBS[job].results
    assert results
    columns = read(ResultMaintainer(results(Conf()), Conf()).arrivals(stored(table)))
    assert columns.keys() == FEW | others
    fields = columns["partitions"].removeprefix("array<struct<").removesuffix(">>").split(",")
    assert {field.partition(":")[0] for field in fields} == of_partitions


def test_of_requests_a_walk_over_sessions_reads_no_body(
    stored: Callable[[Table], DataFrame],
) -> None:
    columns = read(fetches.lines(stored(REQUESTS)))
    assert "partitions" in columns
    assert not {"body", "acks", "producer_id", "weight"} & columns.keys()
