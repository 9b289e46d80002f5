"""Requests about replication and its throttles, and what snapshots found, by hand."""

import json
from collections.abc import Iterable
from typing import Any

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange
from quotaflow.schemas import configs

from ....oracle.rules.throttled_replicas import OPERATIONS
from ....rows import Row, at
from ....rule_rows import compute

LEADERS, FOLLOWERS = configs.LEADER_REPLICAS.key, configs.FOLLOWER_REPLICAS.key
LEADER_RATE, FOLLOWER_RATE = configs.LEADER_RATE.key, configs.FOLLOWER_RATE.key
TOPIC, BROKER = configs.TOPIC, configs.BROKER
SET, DELETE, APPEND, SUBTRACT = OPERATIONS
IN_ORDER = (
    result_of("reassignment_changes"),
    result_of("replication_traffic"),
    result_of("replication_rates"),
    result_of("replication_throttles"),
)
"""As the job computes them: the later read the earlier."""
SNAPSHOTS = ("configs", "topics", "replicas", "brokers")


def request(second: float, api: str, body: Row | str | None = None, **others: Any) -> Row:
    """A request of admin that broker 1 completed."""
    text = json.dumps(body) if isinstance(body, dict) else body
    row = {"event_time": at(second), "record_time": at(second), "api": api, "body": text}
    row |= {"broker_id": 1, "principal": "User:admin", "client_id": "tool"}
    return row | others


def alter(second: float, kind: str, name: str, *changes: tuple[str | None, str, str | None]) -> Row:
    """An alteration of one entity, with its rows of config_alterations.

    A change is the key (None: all keys), the operation and its operand.
    """
    row = {"event_time": at(second), "entity_type": kind, "entity_name": name, "error_code": 0}
    row |= {"principal": "User:admin", "client_id": "tool"}
    rows = [
        row | {"config_key": key, "operation": operation, "config_value": operand}
        for key, operation, operand in changes
    ]
    return request(second, "INCREMENTAL_ALTER_CONFIGS") | {"config_alterations": rows}


def deleted(second: float, topic: str) -> Row:
    """The deletion of a topic, and so of all its configs."""
    return alter(second, TOPIC, topic, (None, DELETE, None)) | {"api": "DELETE_TOPICS"}


def names(second: float, *topics: tuple[str, str]) -> Row:
    """A METADATA answer, with its rows of topic_names."""
    minute = at(second).replace(second=0, microsecond=0)
    rows = [{"event_time": minute, "topic": name, "topic_id": id_} for name, id_ in topics]
    return request(second, "METADATA") | {"topic_names": rows}


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
    """A row of a snapshot."""
    return {"event_time": at(second), "is_removed": False} | others


def config(second: float, kind: str, name: str, key: str, value: str | None, **others: Any) -> Row:
    """A config that a snapshot found; without a value it is removed."""
    row = seen(second, entity_type=kind, entity_name=name, config_key=key, config_value=value)
    source = "DYNAMIC_TOPIC_CONFIG" if kind == TOPIC else "DYNAMIC_BROKER_CONFIG"
    return row | {"is_removed": value is None, "config_source": source} | others


def of_cluster(rows: Iterable[Row], cluster_id: str = "c") -> list[Row]:
    """Rows as those of one cluster, with what comes with them."""
    return [
        {
            name: of_cluster(value, cluster_id)
            if name in ("config_alterations", "topic_names")
            else value
            for name, value in row.items()
        }
        | {"cluster_id": cluster_id}
        for row in rows
    ]


def inputs(requests: list[Row], snapshots: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Tables by name that the results read, without those that are computed here."""
    tables = {"requests": requests} | {name: snapshots.get(name, []) for name in SNAPSHOTS}
    for name in ("config_alterations", "topic_names"):
        tables[name] = [row for one in requests for row in one.get(name, [])]
    return tables


def computed(requests: list[Row], snapshots: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Every result over these rows, each after those it reads."""
    tables, results = inputs(requests, snapshots), dict[str, list[Row]]()
    for result in IN_ORDER:
        results[result.table.name] = rows_of(result, tables | results)
    return results


def rows_of(
    result: Result, tables: dict[str, list[Row]], ranges: Iterable[TimeRange] = (EVER,)
) -> list[Row]:
    """The rows of one result, from those of the tables that it reads."""
    return compute(result, ranges, **{name: tables[name] for name in names_read(result)})


def names_read(result: Result) -> set[str]:
    """The tables that a result reads."""
    return {result.facts.name, *(lookup.table.name for lookup in result.lookups)}
