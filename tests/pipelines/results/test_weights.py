"""A request of weight 3 counts as three alike, in every result that adds requests up."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results import traffic
from quotaflow.pipelines.results.quotas import quota_charges
from quotaflow.pipelines.results.reads import rack_traffic
from quotaflow.pipelines.results.replication import replica_fetches, replication_rates
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.topology import BROKERS, TOPICS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def request(second: float, api: str, size: int, **others: Any) -> dict[str, Any]:
    time = NOON + timedelta(seconds=second)
    row = {"cluster_id": "c", "broker_id": 1, "principal": "User:a", "client_id": "app"}
    row |= {"event_time": time, "record_time": time, "api": api, "client_address": "10.0.0.1"}
    row |= {"local_time_ms": 1.5, "throttle_time_ms": 0.0, "error_code": 0}
    partition = {"topic": "t", "topic_id": "i", "partition": 0, "bytes": size, "error_code": 0}
    return row | {"partitions": [partition] if size else None} | others


ONCE = [
    request(2, "FETCH", 40, replica_id=2),
    request(2, "FETCH", 80),
    request(3, "INIT_PRODUCER_ID", 0, producer_id=5),
]
OTHER = {"topic": "t", "topic_id": "i", "partition": 1, "bytes": 7, "error_code": 0}
WEIGHED = [
    request(1, "PRODUCE", 10),
    request(1.5, "PRODUCE", 20, partitions=[OTHER, OTHER | {"partition": 2}]),
    request(30, "HEARTBEAT", 0),
]


def frame(spark: SparkSession, table: Table, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=table.arrow))


def filters(rows: DataFrame) -> list[str]:
    """The filters of the plan. A filter that is evaluated twice is in the plan twice."""
    plan = rows._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[attr-defined]
    return [line for line in plan.splitlines() if "Filter" in line]


@pytest.mark.spark
def test_a_request_counts_as_often_as_it_stands_for(spark: SparkSession) -> None:
    no_topics, no_brokers = (frame(spark, table, []) for table in (TOPICS, BROKERS))
    rules: dict[str, Callable[[DataFrame], DataFrame]] = {
        "traffic": lambda rows: traffic.traffic(RuleInputs(traffic.result().relevant_facts(rows))),
        "rack_traffic": lambda rows: rack_traffic.between_racks(
            RuleInputs(
                rack_traffic.result({}).relevant_facts(rows), lookups={"brokers": no_brokers}
            )
        ),
        "quota_usage": lambda rows: quota_charges.charges(
            quota_charges.charged(rows), no_topics, no_brokers, 11
        ).drop("is_estimated"),
        "replication": lambda rows: replica_fetches.by_second(
            replication_rates.result().relevant_facts(rows)
        ),
    }
    rows = [*ONCE, *(row | {"weight": 3.0} for row in WEIGHED)]
    # Of rows it has at hand Spark computes what it can while it plans.
    weighed = frame(spark, REQUESTS, rows).localCheckpoint()
    repeated = frame(spark, REQUESTS, [*ONCE, *WEIGHED, *WEIGHED, *WEIGHED])
    for name, rule in rules.items():
        got, expected = (sorted(map(str, rule(rows).collect())) for rows in (weighed, repeated))
        assert got == expected, name
        assert not any("lambda" in line for line in filters(rule(weighed))), name
        assert got != sorted(map(str, rule(frame(spark, REQUESTS, ONCE)).collect())), name


@pytest.mark.spark
def test_a_quota_that_sampled_requests_used_is_estimated(spark: SparkSession) -> None:
    no_topics, no_brokers = (frame(spark, table, []) for table in (TOPICS, BROKERS))

    def estimated(weight: float) -> set[tuple[str, bool]]:
        rows = [row | {"weight": weight} for row in WEIGHED[:2]]
        charged = quota_charges.charged(frame(spark, REQUESTS, rows))
        charges = quota_charges.charges(charged, no_topics, no_brokers, 11).collect()
        return {(r["quota_type"], r["is_estimated"]) for r in charges}

    assert ("producer_byte_rate", False) in estimated(1.0)
    assert ("producer_byte_rate", True) in estimated(2.0)
