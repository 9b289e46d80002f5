"""Requests about replication and its throttles, and what snapshots saw, by hand."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results import config_alterations, topic_names
from quotaflow.pipelines.results.replication import (
    reassignment_changes,
    replication_rates,
    replication_throttles,
    replication_traffic,
)
from quotaflow.schemas.tables.catalog import TABLES

Row = dict[str, Any]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
LEADER_RATE, FOLLOWER_RATE = (
    f"{side}.replication.throttled.rate" for side in ("leader", "follower")
)
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
IN_ORDER = (
    topic_names.result(),
    reassignment_changes.result(),
    config_alterations.result(),
    replication_traffic.result(),
    replication_rates.result(),
    replication_throttles.result(),
)
"""As the job computes them: the later read the earlier."""
SNAPSHOTS = ("configs", "topics", "replicas", "brokers")


def at(second: float) -> datetime:
    """A time that many seconds after noon."""
    return NOON + timedelta(seconds=second)


def request(second: float, api: str, body: Row | str | None = None, **others: Any) -> Row:
    """A request of admin that broker 1 completed."""
    text = json.dumps(body) if isinstance(body, dict) else body
    row = {"event_time": at(second), "record_time": at(second), "api": api, "body": text}
    row |= {"broker_id": 1, "principal": "User:admin", "client_id": "tool"}
    row |= {"client_address": "10.0.0.1", "source_topic": "log", "source_partition": 0}
    return row | others


def alter(
    second: float, kind: int, name: str, *configs: tuple[str, int, str | None], **others: Any
) -> Row:
    """An INCREMENTAL_ALTER_CONFIGS of one resource."""
    answer = {"errorCode": others.pop("code", 0), "errorMessage": others.pop("message", None)}
    resource = {"resourceType": kind, "resourceName": name}
    changes = [{"name": key, "configOperation": op, "value": value} for key, op, value in configs]
    body = {
        "request": {
            "resources": [resource | {"configs": changes}],
            "validateOnly": others.pop("validate", False),
        },
        "response": {"responses": [resource | answer]},
    }
    return request(second, "INCREMENTAL_ALTER_CONFIGS", body, **others)


def names(second: float, *topic_names: tuple[str, str]) -> Row:
    """A METADATA answer."""
    topics = [{"name": name, "topicId": id_} for name, id_ in topic_names]
    return request(second, "METADATA", {"request": {}, "response": {"topics": topics}})


def reassign(second: float, topic: str, replicas: list[int] | None) -> Row:
    """A move of partition 0 that the controller took, or with None the end of one."""
    partition_entry, done = {"partitionIndex": 0}, {"errorCode": 0}
    body = {
        "request": {
            "topics": [{"name": topic, "partitions": [partition_entry | {"replicas": replicas}]}]
        },
        "response": done | {"responses": [{"name": topic, "partitions": [partition_entry | done]}]},
    }
    return request(second, "ALTER_PARTITION_REASSIGNMENTS", body)


def in_sync(second: float, topic_id: str, *isr: int) -> Row:
    """A change of the in-sync replicas of partition 0."""
    partition_entry, done = {"partitionIndex": 0}, {"errorCode": 0}
    epochs = {"newIsrWithEpochs": [{"brokerId": id_} for id_ in isr]}
    body = {
        "request": {"topics": [{"topicId": topic_id, "partitions": [partition_entry | epochs]}]},
        "response": done
        | {"topics": [{"topicId": topic_id, "partitions": [partition_entry | done]}]},
    }
    return request(second, "ALTER_PARTITION", body, broker_id=9)


def part(size: int | None, **others: Any) -> Row:
    """Partition 0 of id1, fetched from offset 10 and answered with a high watermark of 90."""
    row = {"topic_id": "id1", "partition": 0, "bytes": size, "error_code": 0, "in_request": True}
    return (
        row | {"in_response": size is not None, "fetch_offset": 10, "high_watermark": 90} | others
    )


def fetch(second: float, leader: int, follower: int, *partitions: Row, **others: Any) -> Row:
    """A fetch of a follower."""
    row = {"broker_id": leader, "replica_id": follower, "principal": "User:broker"}
    return request(second, "FETCH", **row, partitions=list(partitions), **others)


def produce(second: float, leader: int, *partitions: Row) -> Row:
    """What a client wrote."""
    written = [{k: p[k] for k in ("topic_id", "partition", "bytes")} for p in partitions]
    return request(second, "PRODUCE", broker_id=leader, partitions=written)


def seen(second: float, **others: Any) -> Row:
    """What a snapshot saw."""
    return {"event_time": at(second), "is_removed": False} | others


def config(second: float, kind: str, name: str, key: str, value: str | None, **others: Any) -> Row:
    """A config a snapshot saw; gone without a value."""
    row = seen(second, entity_type=kind, entity_name=name, config_key=key, config_value=value)
    source = "DYNAMIC_TOPIC_CONFIG" if kind == "topic" else "DYNAMIC_BROKER_CONFIG"
    return row | {"is_removed": value is None, "config_source": source} | others


def frame(spark: SparkSession, name: str, rows: list[Row]) -> DataFrame:
    """Rows as the table of that name; requests are numbered."""
    numbered = [row | {"source_offset": n} for n, row in enumerate(rows)]
    content = numbered if name == "requests" else rows
    return spark.createDataFrame(pa.Table.from_pylist(content, schema=TABLES[name].arrow))


def computed(
    spark: SparkSession, requests: list[Row], snapshots: dict[str, list[Row]]
) -> dict[str, list[Row]]:
    """Every result on these requests, each after those it reads."""
    facts = frame(spark, "requests", requests)
    snapshot_frames = {name: frame(spark, name, snapshots.get(name, [])) for name in SNAPSHOTS}
    computed_rows = dict[str, list[Row]]()
    for result in IN_ORDER:
        rows = _compute(result, facts, snapshot_frames)
        assert rows.columns == result.table.column_names
        computed_rows[result.table.name] = [row.asDict() for row in rows.collect()]
        snapshot_frames[result.table.name] = frame(
            spark, result.table.name, computed_rows[result.table.name]
        )
    return computed_rows


def _compute(result: Result, facts: DataFrame, snapshot_frames: dict[str, DataFrame]) -> DataFrame:
    context = {lookup.table.name: snapshot_frames[lookup.table.name] for lookup in result.lookups}
    return result.compute(RuleInputs(result.relevant_facts(facts), lookups=context))
