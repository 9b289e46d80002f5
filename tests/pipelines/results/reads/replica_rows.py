"""Rows of fetches and of snapshots, by hand."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.results.declared import result_of

from ....rows import Row, at
from ....rule_rows import compute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEFORE = -600
RACKS = {"10.2.0.0/16": "az-b"}


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


def frame(spark: "SparkSession", schema: pa.Schema, rows: list[Row]) -> "DataFrame":
    """Rows as a table of that schema."""
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


def of_cluster(rows: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """Rows of tables, all of cluster c."""
    return {name: [row | {"cluster_id": "c"} for row in given] for name, given in rows.items()}


def with_offsets(result: Result, tables: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """Tables, with the offsets of replicas that the fetches show, if the result looks them up."""
    if "replica_offsets" not in {lookup.table.name for lookup in result.lookups}:
        return dict(tables)
    offsets = result_of("replica_offsets")
    read = {offsets.facts.name, *(lookup.table.name for lookup in offsets.lookups)}
    rows = compute(offsets, **{name: tables[name] for name in read & set(tables)})
    return {**tables, "replica_offsets": rows}


def computed(result: Result, **rows: list[Row]) -> list[Row]:
    """The rows of a result over rows of one cluster; no key comes twice."""
    got = compute(result, **with_offsets(result, of_cluster(rows)))
    keys = [tuple(row[name] for name in result.table.key) for row in got]
    assert len(set(keys)) == len(keys)
    return got
