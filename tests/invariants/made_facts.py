"""Facts and snapshots drawn at random, with nulls wherever a table allows them."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa

from quotaflow.pipelines import config
from quotaflow.pipelines.snapshots import settings
from quotaflow.schemas.table import DATE, TIMESTAMP, Table
from quotaflow.schemas.tables.catalog import TABLES

from ..delta_tables import NOON

Rows = list[dict[str, Any]]

CLUSTERS = {"c1": 0.0, "c2": 0.12, "c3": 0.4}
"""Cluster -> the share of values that are null, where a table allows it."""
SECONDS = 240
"""Facts are of so many seconds after noon."""

_TOPICS = {"orders": "topic-1", "payments.eu": "topic-2", "left": "topic-3"}
_BROKERS = (1, 2, 3)
_MOST_ROWS = {"requests": 160, "fetches": 120, "client_metrics": 120, "telemetry_pushes": 40}

_POOLS: Mapping[str, tuple[Any, ...]] = {
    "broker_id": _BROKERS,
    "partition": (0, 1),
    "principal": ("User:alice", "User:bob", "User:shipper", "User:O=a,CN=b", "ServiceAccount:sa.1"),
    "client_id": ("orders", "batch-1", "batch-2", "", "quotaflow-shipper"),
    "client_software_name": ("apache-kafka-java", "librdkafka", "franz-go"),
    "client_software_version": ("4.3.1", "3.9.0", "2.10.1", "unknown"),
    "client_address": ("10.0.0.7", "10.0.1.7", "fe80::1"),
    "client_instance_id": ("i1", "i2", "i3"),
    "listener": ("CLIENT",),
    "connection_id": ("c-1", "c-2", "c-3"),
    "error_code": (0, 0, 0, 0, 0, 1, 3, 6, 29, 87),
    "acks": (-1, 0, 1),
    "replica_id": (None, None, 1, 2, 3),
    "rack_id": ("az-a", "az-b", ""),
    "rack": ("az-a", "az-b"),
    "client_rack": ("az-a", "az-b", "az-c"),
    "weight": (1.0, 1.0, 1.0, 10.0),
    "isolation_level": (0, 1),
    "api_version": (11, 12, 13, 16, 18),
    "session_epoch": (0, 1, 2, -1),
    "session_id": (0, 7),
    "session_state": ("full", "incremental", "unknown", "none"),
    "throttle_time_ms": (0.0, 0.0, 0.0, 1.0, 700.0, 11_000.0),
    "total_time_ms": (0.0, 0.3, 2.0, 500.0, 20_000.0),
    "max_bytes": (0, 1, 1_048_576, 52_428_800, 2**31 - 1),
    "partition_max_bytes": (0, 1, 1_048_576),
    "bytes": (0, 1, 900, 1_048_576),
    "wire_bytes": (100, 5_000),
    "decoded_bytes": (400, 90_000),
    "push_interval_ms": (100, 1_000, 300_000),
    "producer_id": (-1, 0, 1, 2, 3, 4, 5, 6, 7),
    "producer_epoch": (-1, 0, 1),
    "transactional_id": ("tx-1", "tx-2", None, None),
    "group_id": ("g-1",),
    "route": ("request_log", "receiver"),
    "unreadable_reason": (None,),
    "entity_type": ("topic", "broker", "client-metrics"),
    "entity_name": ("orders", "1", "2"),
    "config_key": ("leader.replication.throttled.rate", "leader.replication.throttled.replicas"),
    "config_value": ("1500000", "0:1,1:2", "*"),
    "is_removed": (False, False, False, True),
    "metric": (
        "org.apache.kafka.producer.record.send.total",
        "org.apache.kafka.producer.node.request.latency.avg",
        "org.apache.kafka.producer.node.request.latency.max",
        "org.apache.kafka.consumer.fetch.manager.bytes.consumed.total",
        "org.apache.kafka.consumer.fetch.manager.preferred.read.replica",
    ),
    "kind": ("sum", "gauge"),
    "temporality": ("delta", "cumulative"),
    "node_id": (1, 2, 3),
    "node_kind": ("broker",),
    "series_id": (1, 2, 3, 4),
    "payload_sha256": tuple(f"sha{n}" for n in range(20)),
    "value": (0.0, 1.0, 3.5, 1e12, float("nan")),
}
_APIS = ("PRODUCE", "PRODUCE", "PRODUCE", "FETCH", "INIT_PRODUCER_ID", "METADATA", "SHARE_FETCH")
_GROUP_APIS = ("OFFSET_COMMIT", "HEARTBEAT", "JOIN_GROUP", "CONSUMER_GROUP_HEARTBEAT")
_GROUP_APIS += ("SHARE_ACKNOWLEDGE",)
_POOLS_OF: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "requests": {
        "api": (*_APIS, *_GROUP_APIS, "WRITE_TXN_MARKERS", "END_TXN", "ADD_PARTITIONS_TO_TXN")
    },
    "client_quotas": {
        "config_key": ("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
        "quota": (1.0, 100.0, 1e6, 1e15),
        "user": ("alice", "bob", None),
        "ip": (None,),
        "is_default_ip": (False,),
    },
    "active_producers": {"last_timestamp": (NOON, NOON + timedelta(seconds=30))},
}
_NEVER_NULL = {"event_time", "is_removed", "record_time", "weight", "client_id", "accepted"}
_NEVER_NULL |= {"series_id"}
_DRAWN = (
    *("requests", "fetches", "telemetry_pushes", "telemetry_subscriptions", "client_metrics"),
    *("brokers", "topics", "replicas", "replica_sizes", "configs", "client_quotas"),
    *("active_producers", "transactional_ids"),
)
_TIMES = ("request_queue", "local", "remote", "response_queue", "send")


def made_facts(seed: int, conf: config.Conf) -> dict[str, Rows]:
    """Rows of facts and snapshots by table; the same seed gives the same rows."""
    random = Random(seed)
    drawn = {name: _rows(TABLES[name], random) for name in _DRAWN}
    given = {"event_time": NOON, "is_removed": False}
    kept = [{"cluster_id": c, **given, **row} for c in CLUSTERS for row in settings.of_conf(conf)]
    return drawn | {"settings": kept}


def _rows(table: Table, random: Random) -> Rows:
    rows: dict[str, dict[str, Any]] = {}
    for cluster, null_share in CLUSTERS.items():
        for number in range(random.randint(0, _MOST_ROWS.get(table.name, 12))):
            row = _row(table, random, null_share) | {"cluster_id": cluster}
            row = _AGREEING.get(table.name, _as_drawn)(row, random)
            if "source_offset" in row:
                row |= {"source_topic": "log", "source_partition": 0, "source_offset": number}
            rows[repr([row[name] for name in table.key])] = row
    return list(rows.values())


def _row(table: Table, random: Random, null_share: float) -> dict[str, Any]:
    own = _POOLS_OF.get(table.name, {})
    drawn = {column.name: _value(column.name, column.type, own, random) for column in table.columns}
    kept = {*table.key, *_NEVER_NULL}
    return {
        name: value if name in kept or random.random() >= null_share else None
        for name, value in drawn.items()
    }


def _as_drawn(row: dict[str, Any], _: Random) -> dict[str, Any]:
    return row


def _request(row: dict[str, Any], _: Random) -> dict[str, Any]:
    """A time is at least the sum of its parts, and only followers name a replica."""
    parts = [row[f"{part}_time_ms"] for part in _TIMES if row.get(f"{part}_time_ms") is not None]
    if row["total_time_ms"] is not None:
        row["total_time_ms"] += sum(parts)
    if row.get("api", "FETCH") != "FETCH":
        row["replica_id"] = row["rack_id"] = None
    if row["replica_id"] is not None:
        row["principal"] = "User:broker"
    return row


def _fetch(row: dict[str, Any], random: Random) -> dict[str, Any]:
    """What is session of a session is session as a whole."""
    parts, limit = random.randint(1, 50), random.choice((1, 1_048_576))
    names = ("session_partitions", "session_partition_max_bytes", "session_max_bytes")
    session = (max(parts, len(row["partitions"] or ())), limit, limit * parts)
    if row["session_state"] == "unknown":
        session = (None, None, None)
    return _request(row | dict(zip(names, session, strict=True)), random)


def _push(row: dict[str, Any], _: Random) -> dict[str, Any]:
    return row | {"accepted": row["error_code"] == 0}


def _point(row: dict[str, Any], random: Random) -> dict[str, Any]:
    start = row["event_time"] - timedelta(seconds=random.choice((1, 10)))
    return row | {"attributes": [("node.id", str(row["node_id"]))], "start_time": start}


def _named(row: dict[str, Any], random: Random) -> dict[str, Any]:
    topic = random.choice(list(_TOPICS))
    return row | {"topic": topic, "topic_id": _TOPICS[topic]}


def _quota(row: dict[str, Any], _: Random) -> dict[str, Any]:
    is_default = row["user"] is None and row["client_id"] is not None
    return row | {"is_default_user": is_default, "is_default_client_id": False}


_AGREEING: Mapping[str, Callable[[dict[str, Any], Random], dict[str, Any]]] = {
    "requests": _request,
    "fetches": _fetch,
    "telemetry_pushes": _push,
    "client_metrics": _point,
    "topics": _named,
    "replicas": _named,
    "client_quotas": _quota,
}
"""What parser and snapshot guarantee of rows."""


def _value(name: str, kind: pa.DataType, own: Mapping[str, tuple[Any, ...]], random: Random) -> Any:
    pool = own.get(name) or _POOLS.get(name)
    if pool is not None:
        return random.choice(pool)
    made = next((make for is_of, make in _BY_TYPE if is_of(kind)), None)
    return None if made is None else made(kind, random)


def _struct(kind: pa.DataType, random: Random) -> dict[str, Any]:
    fields = {field.name: _value(field.name, field.type, {}, random) for field in kind}
    if "topic" in fields:
        topic, named = random.choice(list(_TOPICS)), random.random()
        fields["topic"] = topic if named < 0.7 else None
        fields["topic_id"] = _TOPICS[topic] if named > 0.3 else None
    if "bytes" in fields and random.random() < 0.1:
        fields |= {"bytes": None, "high_watermark": -1, "log_start_offset": -1, "error_code": 6}
    return fields


_BY_TYPE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, Random], Any]], ...] = (
    (lambda kind: kind == TIMESTAMP, lambda _, random: _time(random)),
    (lambda kind: kind == DATE, lambda _, random: _time(random).date()),
    (pa.types.is_boolean, lambda _, random: random.random() < 0.5),
    (pa.types.is_integer, lambda _, random: random.choice((0, 1, 2, 7, 1_000))),
    (pa.types.is_floating, lambda _, random: random.choice((0.0, 0.5, 3.0, 1_000.0))),
    (pa.types.is_string, lambda _, random: random.choice(("a", "b", "%_'"))),
    (pa.types.is_binary, lambda _, random: random.randbytes(8)),
    (pa.types.is_map, lambda _, __: []),
    (pa.types.is_list, lambda kind, random: _list(kind.value_type, random)),
)


def _list(kind: pa.DataType, random: Random) -> list[dict[str, Any]]:
    if not pa.types.is_struct(kind):
        return []
    structs = [_struct(kind, random) for _ in range(random.randint(0, 3))]
    return list(
        {repr((s.get("topic_id"), s.get("topic"), s.get("partition"))): s for s in structs}.values()
    )


def _time(random: Random) -> datetime:
    return NOON + timedelta(milliseconds=random.randint(0, SECONDS * 1_000))
