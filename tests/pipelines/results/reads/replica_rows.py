"""Fetches as the job writes them, and what snapshots saw, by hand."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results.reads import preferred_replicas

Row = dict[str, Any]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
BEFORE = -600
CONTEXT = [context.table.name for context in preferred_replicas.result({}).lookups]
RACKS = {"10.2.0.0/16": "az-b"}


def at(second: float) -> datetime:
    """A time that many seconds after noon."""
    return NOON + timedelta(seconds=second)


def answered(size: int | None, **others: Any) -> Row:
    """A partition that was answered."""
    row = {"topic_id": "id1", "partition": 0, "bytes": size, "error_code": 0}
    return row | {"preferred_read_replica": -1, "high_watermark": 100} | others


def fetch(second: float, broker_id: int, *partitions: Row, **others: Any) -> Row:
    """A fetch of alice that a broker answered."""
    row = {"broker_id": broker_id, "event_time": at(second), "record_time": at(second)}
    row |= {"principal": "User:alice", "client_id": "reader", "client_address": "10.1.0.1"}
    row |= {"api_version": 17, "rack_id": "az-b", "partitions": list(partitions)}
    return row | others


def seen(second: float, **others: Any) -> Row:
    """What a snapshot saw."""
    return {"event_time": at(second), "is_removed": False} | others


def replica(broker_id: int, second: float = BEFORE, **others: Any) -> Row:
    """A replica that is in sync; broker 1 leads."""
    row = seen(second, topic_id="id1", topic="orders", partition=0, broker_id=broker_id)
    row |= {"is_leader": broker_id == 1, "is_in_sync": True, "is_offline": False}
    return row | others


def broker(broker_id: int, rack: str | None, second: float = BEFORE) -> Row:
    """A broker and its rack."""
    return seen(second, broker_id=broker_id, rack=rack)


def selector(value: str | None, second: float = BEFORE) -> Row:
    """The replica.selector.class of broker 1."""
    row = seen(second, entity_type="broker", entity_name="1", config_value=value)
    return row | {"config_key": "replica.selector.class"}


def frame(spark: SparkSession, schema: pa.Schema, rows: list[Row]) -> DataFrame:
    """Rows as a table of that schema."""
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


def rows_by_case(
    spark: SparkSession,
    result: Result,
    cases: Mapping[str, tuple[list[Row], Mapping[str, list[Row]], object]],
) -> dict[str, list[Row]]:
    """Rows of each case, a cluster of its own, all computed in one frame; no key comes twice.

    A case is its fetches, what snapshots saw by the names of tables, and what is expected of it.
    """
    facts, context = list[Row](), defaultdict[str, list[Row]](list)
    for case, (fetches, snapshots, _) in cases.items():
        facts += [row | {"cluster_id": case} for row in fetches]
        for name, rows in snapshots.items():
            context[name] += [row | {"cluster_id": case} for row in rows]
    lookup_tables = [one.table for one in result.lookups]
    inputs = RuleInputs(
        result.relevant_facts(frame(spark, result.facts.arrow, facts)),
        lookups={one.name: frame(spark, one.arrow, context[one.name]) for one in lookup_tables},
    )
    computed = result.compute(inputs)
    assert computed.columns == result.table.column_names
    of_case = defaultdict[str, list[Row]](list)
    for row in computed.collect():
        of_case[row["cluster_id"]].append(row.asDict())
    keys = [tuple(row[n] for n in result.table.key) for rows in of_case.values() for row in rows]
    assert len(set(keys)) == len(keys)
    return of_case
