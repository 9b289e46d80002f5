"""Rows of tables as views meet them: what each test does not name is the same everywhere."""

import atexit
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from quotaflow.pipelines import config as conf_of
from quotaflow.pipelines.reader import Reader, engine_errors
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas import tables
from quotaflow.schemas.fetch_size_tables import LIMITERS
from quotaflow.schemas.table import Table

from .conftest import NOON, violation

KAFKA = "org.apache.kafka."
LONG_AGO, FAR_AHEAD = NOON.replace(year=2020), NOON.replace(year=2500)
NAN, INFINITE = float("nan"), float("inf")
HOSTILE = "'; DROP TABLE requests; --\\\n\u202e%_"
Row = dict[str, Any]

CLIENT = {
    "cluster_id": "c1",
    "principal": "User:alice",
    "client_id": "orders",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_address": "10.0.0.7",
    "broker_id": 1,
}
INSTANCE = {**CLIENT, "client_instance_id": "i1"}


def at(second: float) -> datetime:
    """A time that many seconds after noon."""
    return NOON + timedelta(seconds=second)


def rows(warehouse: Warehouse, sql: str) -> list[Row]:
    """The answer without a JVM."""
    with engine_errors(sql):
        return [dict(row) for row in Reader(warehouse).query(sql).read_all().to_pylist()]


def picked(found: list[Row], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of each row."""
    return [tuple(row[name] for name in names) for row in found]


def by_case(
    folder: Path, cases: Mapping[str, dict[str, list[Row]]], sql: str
) -> dict[str, list[Row]]:
    """Rows of a query over each case, the content of its tables: a query is planned once for all.

    Each case is a cluster of its own, so that one that reaches into another's shows too.
    """
    warehouse = Warehouse(conf_of.Warehouse(path=str(folder)))
    content = defaultdict[str, list[Row]](list)
    for case, told in cases.items():
        for table, lines in told.items():
            content[table] += [row | {"cluster_id": case} for row in lines]
    make_tables(warehouse, content)
    found: dict[str, list[Row]] = {case: [] for case in cases}
    for row in rows(warehouse, sql):
        found[row["cluster_id"]].append(row)
    return found


def gauge(second: float, metric: str, value: float, **others: Any) -> Row:
    """A reading a client pushed."""
    row = {
        **INSTANCE,
        "event_time": at(second),
        "metric": KAFKA + metric,
        "kind": "gauge",
        "value": value,
        "series_id": hash_of(metric, **others),
        "accepted": True,
        "payload_sha256": f"sha{second}",
    }
    return row | others


SENT = "producer.record.send.total"


def delta(
    second: float, start: float | None, value: float, metric: str = SENT, **others: Any
) -> Row:
    """A sum as Kafka's clients send it: what came since its start."""
    row = gauge(second, metric, value, **others)
    span = {"start_time": None if start is None else at(start)}
    return row | span | {"kind": "sum", "temporality": "delta", "is_monotonic": True} | others


def cumulative(second: float, start: float | None, value: float, **others: Any) -> Row:
    """A sum as a Collector may send it: what came since the process began."""
    return delta(second, start, value, **({"temporality": "cumulative"} | others))


def hash_of(metric: str, **others: Any) -> int:
    """A series_id as far as a test needs one."""
    told = (metric, *(str(others.get(name)) for name in ("client_instance_id", "topic", "node_id")))
    return sum(ord(letter) * 31**i for i, letter in enumerate("/".join(told))) % 2**62


def request(second: float, api: str, **others: Any) -> Row:
    """A request a broker completed."""
    row = {**CLIENT, "event_time": at(second), "api": api}
    return row | {"total_time_ms": 2.0, "throttle_time_ms": 0.0} | others


def push(second: float, **others: Any) -> Row:
    """A push as the request log has it."""
    row = {
        **INSTANCE,
        "event_time": at(second),
        "accepted": True,
        "error_code": 0,
        "terminating": False,
        "compression": "zstd",
        "wire_bytes": 100,
        "decoded_bytes": 1_000,
        "payload_sha256": f"sha{second}",
        "route": "request_log",
    }
    return row | others


def alert(second: float, state: str, **others: Any) -> Row:
    """An event of an alert on a reading, some seconds after LONG_AGO."""
    row = {
        **INSTANCE,
        "event_date": LONG_AGO.date(),
        "event_time": LONG_AGO + timedelta(seconds=second),
        "alert_id": "a",
        "rule": "slow",
        "metric": "org.apache.kafka.producer.record.queue.time.avg",
        "state": state,
        "first_breach": LONG_AGO,
        "value": 6_000.0,
        "peak_value": 7_000.0,
        "attributes": {"topic": "t"},
    }
    return row | others


def batch(second: float, batch_id: int | None, job: str = "facts", **others: Any) -> Row:
    """A micro-batch as Spark told it; without a number nothing new was there."""
    row = {"cluster_id": "c1", "event_time": at(second), "job": job, "query_id": "q-" + job}
    row |= {"run_id": "r1", "batch_id": batch_id, "input_rows": 10, "processed_rows_per_s": 5.0}
    return row | {"duration_ms": 2_000, "behind_offsets": 7} | others


def counted(second: float, batch_id: int, outcome: str, n: int, **others: Any) -> Row:
    """What a job counted in one of its batches."""
    row = {"cluster_id": "c1", "event_time": at(second), "job": "facts", "query_id": "q-facts"}
    return row | {"batch_id": batch_id, "outcome": outcome, "row_count": n} | others


def config(second: float, key: str, value: str | None, **others: Any) -> Row:
    """A config of a client-metrics resource as a snapshot saw it; gone without a value."""
    row = {
        "cluster_id": "c1",
        "event_time": at(second),
        "entity_type": "client-metrics",
        "entity_name": "all",
        "config_key": key,
        "config_value": value,
        "is_removed": value is None,
    }
    return row | others


def quota(second: float, key: str, quota: float | None, **others: Any) -> Row:
    """A client quota as a snapshot saw it; gone without a quota."""
    nobody = {f"is_default_{part}": False for part in ("user", "client_id", "ip")}
    row = {"config_key": key, "quota": quota, "is_removed": quota is None}
    return {"cluster_id": "c1", "event_time": at(second)} | nobody | row | others


def setting(key: str, value: object, second: float = 0, **others: Any) -> Row:
    """A value of conf as a snapshot found it."""
    row = {"cluster_id": "c1", "event_time": at(second), "setting": key, "is_removed": False}
    return row | {"setting_value": str(value)} | others


def moved(second: float, size: int, **others: Any) -> Row:
    """Bytes a client produced, as `traffic` counts them."""
    row = {name: CLIENT[name] for name in ("cluster_id", "principal", "client_id", "broker_id")}
    row |= {"event_time": at(second), "event_date": at(second).date(), "topic_id": "t1"}
    return row | {"direction": "produced", "bytes": size} | others


def use(second: float, producer_id: int | None, **others: Any) -> Row:
    """A producer id a broker gave a client, or with None what that client produced."""
    minute = at(second).replace(second=0, microsecond=0)
    row = {
        **{name: value for name, value in CLIENT.items() if name != "broker_id"},
        "client_pattern": CLIENT["client_id"],
        "event_date": minute.date(),
        "event_time": minute,
        "broker_id": 1,
        "producer_id": producer_id,
        "first_seen": at(second),
        "last_seen": at(second),
        "requests": 1,
        "allocations": int(producer_id is not None),
        "produce_requests": 0,
    }
    return row | others


def active(second: float, producer_id: int, wrote_s: float | None = None, **others: Any) -> Row:
    """What a snapshot saw a leader hold of a producer id; it wrote just then, or at `wrote_s`."""
    row = {
        **{"cluster_id": "c1", "event_time": at(second), "broker_id": 1},
        **{"topic": "t", "partition": 0, "producer_id": producer_id, "is_removed": False},
        "last_timestamp": at(second if wrote_s is None else wrote_s),
    }
    return row | others


def used(second: float, quota_type: str, usage: float, **others: Any) -> Row:
    """What a client used of a quota of its user, as `quota_usage` tells it."""
    row = {name: CLIENT[name] for name in ("cluster_id", "principal", "client_id", "broker_id")}
    row |= {"event_time": at(second), "event_date": at(second).date(), "quota_type": quota_type}
    row |= {"usage": usage, "bucket_usage": usage, "bucket_user": "alice", "quota_level": 3}
    row |= {"quota": 1_000.0, "headroom": 1_000.0 - usage, "is_over": usage > 1_000.0}
    row |= {"request_count": 10, "throttled_requests": 0, "throttle_time_ms": 0.0}
    return row | {"is_estimated": False, "enforcement": "stock"} | others


def fetched(second: float, fetches: int, size: int, **others: Any) -> Row:
    """A minute of fetch_sizes in which every fetch brought records."""
    minute = at(second // 60 * 60)
    row = {"cluster_id": "c1", "event_date": minute.date(), "event_time": minute, "broker_id": 1}
    row |= {"principal": "User:alice", "client_id": "orders", "fetches": fetches, "bytes": size}
    row |= dict.fromkeys((f"{name}_fetches" for name in LIMITERS), 0)
    row |= {"max_response_bytes": size, "max_bytes": 2**20, "partition_max_bytes": 2**16}
    row |= {"min_bytes": 1, "max_wait_ms": 500, "partitions": 4, "bound_bytes": 2**18}
    row |= {"filled_fetches": 0, "first_partitions": 0, "starved_fetches": 0}
    row |= {"starved_partitions": 0, "most_starved_fetches": 0, "oversized_batches": 0}
    return row | others


def crossed(second: float, size: int, **others: Any) -> Row:
    """A minute of rack_traffic: read in az-b of a broker in az-a."""
    minute = at(second // 60 * 60)
    row = {
        "cluster_id": "c1",
        "event_date": minute.date(),
        "event_time": minute,
        "flow": "consumed",
    }
    row |= {"client_rack": "az-b", "is_rack_inferred": False, "broker_id": 1, "broker_rack": "az-a"}
    return row | {"requests": 1, "bytes": size, "cross_rack_bytes": size} | others


def choice(second: float, size: int, **others: Any) -> Row:
    """What a consumer in az-b read across racks from leader 1, though replica 2 is nearer."""
    row = {name: CLIENT[name] for name in ("cluster_id", "principal", "client_id", "broker_id")}
    row |= {"event_time": at(second), "event_date": at(second).date(), "topic_id": "t1"}
    row |= {"topic": "orders", "partition": 0, "client_rack": "az-b", "is_rack_inferred": False}
    row |= {"broker_rack": "az-a", "leader_id": 1, "leader_rack": "az-a", "api_version": 17}
    row |= {"bytes": size, "fetches": 1, "redirects": 0, "eligibility": "known"}
    row |= {"expected_replica": 2, "expected_reason": "follower_in_rack"}
    row |= {"recommended_replica": 2, "recommended_reason": "follower_in_rack"}
    row |= {"eligible_replicas": [2]}
    return row | {"cross_rack_bytes": size, "avoidable_bytes": size} | others


def reassigned(second: float, change: str, replica_id: int | None, **others: Any) -> Row:
    """What admin asked of partition 0 of orders."""
    row = {"cluster_id": "c1", "event_time": at(second), "event_date": at(second).date()}
    row |= {"broker_id": 1, "change": change, "topic_id": None, "topic": "orders"}
    row |= {"partition": 0, "replica_id": replica_id, "error_code": 0}
    return row | {"principal": "User:admin", "client_id": "reassign-partitions-tool"} | others


def behind(second: float, replica_id: int, lag: int, offset: int, size: int, **others: Any) -> Row:
    """Ten seconds of a follower that has so many offsets left of partition 0 of orders."""
    row = {"cluster_id": "c1", "event_time": at(second), "event_date": at(second).date()}
    row |= {"broker_id": 1, "replica_id": replica_id, "topic_id": "t1", "topic": None}
    row |= {"partition": 0, "fetches": 1, "bytes": size, "first_offset": offset}
    row |= {"last_offset": offset, "last_time": at(second + 9), "lag": lag, "max_lag": lag}
    return row | {"high_watermark": offset + lag} | others


def fault(second: float, kind: str, answers: int = 1, **others: Any) -> Row:
    """A minute of fetch_faults: what broker 2, a follower, answered to a consumer."""
    minute = at(second // 60 * 60)
    row = {name: CLIENT[name] for name in ("cluster_id", "principal", "client_id")}
    row |= {"event_time": minute, "event_date": minute.date(), "broker_id": 2, "topic_id": "t1"}
    row |= {"topic": "orders", "partition": 0, "fault": kind, "answers": answers, "leader_id": 1}
    row |= {"client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"}
    return row | {"min_fetch_offset": 5, "max_fetch_offset": 5} | others


def stood(second: float, broker_id: int, log_start_offset: int, **others: Any) -> Row:
    """A minute of replica_offsets: where a replica's log began, and its high watermark."""
    minute = at(second // 60 * 60)
    row = {"cluster_id": "c1", "event_time": minute, "event_date": minute.date()}
    row |= {"topic_id": "t1", "topic": "orders", "partition": 0, "broker_id": broker_id}
    row |= {"answers": 1, "answers_to_followers": 0, "follower_fetches": 0}
    row |= {"min_log_start_offset": log_start_offset, "max_log_start_offset": log_start_offset}
    return row | {"min_high_watermark": 100, "max_high_watermark": 100} | others


def lookup(second: float, position: str, last_offset: int | None, **others: Any) -> Row:
    """A minute of offset_lookups: what the leader answered to a client."""
    minute = at(second // 60 * 60)
    row = {name: CLIENT[name] for name in ("cluster_id", "principal", "client_id", "broker_id")}
    row |= {"event_time": minute, "event_date": minute.date(), "api": "LIST_OFFSETS"}
    row |= {"topic": "orders", "partition": 0, "position": position, "error_code": 0}
    row |= {"requests": 1, "last_offset": last_offset, "diverged_answers": 0}
    return row | others


def altered(second: float, key: str, value: str | None, **others: Any) -> Row:
    """A config of a topic or broker that admin set, or without a value removed."""
    row = {"cluster_id": "c1", "event_time": at(second), "event_date": at(second).date()}
    row |= {"api": "INCREMENTAL_ALTER_CONFIGS", "broker_id": 1, "error_code": 0}
    row |= {"principal": "User:admin", "client_id": "reassign-partitions-tool"}
    row |= {"client_software_name": "apache-kafka-java", "position": 0}
    is_rate = key.endswith("rate")
    row |= {"entity_type": "broker", "entity_name": "1"} if is_rate else {}
    row |= {} if is_rate else {"entity_type": "topic", "entity_name": "orders"}
    row |= {"config_key": key, "config_value": value, "operation": "SET" if value else "DELETE"}
    row |= {"source_topic": "log", "source_partition": 0, "source_offset": int(second)}
    return row | others


def limited(second: float, key: str, value: str | None, **others: Any) -> Row:
    """A quota of alice that admin set, or without a value removed."""
    row = altered(second, key, value, api="ALTER_CLIENT_QUOTAS", client_id="adminclient-1")
    return row | {"entity_type": "user", "entity_name": "alice"} | others


def replicated(second: float, leader_id: int, follower_id: int | None, **others: Any) -> Row:
    """A minute in which a follower read partition 0 of orders; with None, clients wrote it."""
    minute = at(second // 60 * 60)
    row = {"cluster_id": "c1", "event_time": minute, "event_date": minute.date()}
    row |= {"leader_id": leader_id, "follower_id": follower_id, "topic_id": "t1"}
    row |= {"topic": "orders", "partition": 0, "fetches": 10, "bytes": 6_000}
    row |= {"leader_throttled_bytes": 0, "follower_throttled_bytes": 0, "behind_fetches": 0}
    row |= {"held_back_fetches": 0, "left_out_fetches": 0}
    return row | ({} if follower_id is None else {"offset_lag": 0}) | others


def throttled(second: float, **others: Any) -> Row:
    """A minute in which broker 1 holds back follower 2, which is moved to, on partition 0."""
    minute = at(second // 60 * 60)
    row = {"cluster_id": "c1", "event_time": minute, "event_date": minute.date()}
    row |= {"topic": "orders", "partition": 0, "side": "leader", "broker_id": 1}
    row |= {"peer_broker_id": 2, "listed": "entry", "rate": 2e6, "rate_source": "dynamic_broker"}
    setter = {"set_at": at(0), "set_by": "User:admin", "set_by_client_id": "tool"}
    row |= {f"{of}_{name}": value for of in ("list", "rate") for name, value in setter.items()}
    row |= {"is_standing": True, "is_moving": True, "in_isr": False, "offset_lag": 5}
    return row | {"bytes": 6_000, "is_effective": True, "is_biting": True} | others


def make_tables(warehouse: Warehouse, content: dict[str, list[Row]]) -> None:
    """Every table, with the comments that jobs give columns, holding these rows."""
    assert content.keys() <= tables.TABLES.keys()
    shutil.copytree(_empty_tables(), warehouse.conf.folder, dirs_exist_ok=True)
    for name, told in content.items():
        make_table(warehouse, tables.TABLES[name], told)


@cache
def _empty_tables() -> Path:
    """A folder of all tables without rows: to copy it takes a thirtieth of making them anew."""
    folder = Path(tempfile.mkdtemp(prefix="quotaflow-empty-"))
    atexit.register(shutil.rmtree, folder)
    for table in tables.TABLES.values():
        make_table(Warehouse(conf_of.Warehouse(path=str(folder))), table, [])
    return folder


def make_table(warehouse: Warehouse, table: Table, content: list[Row]) -> None:
    """One table alone, whatever it held before."""
    described = pa.schema(
        pa.field(column.name, column.type, metadata={"comment": column.comment})
        for column in table.columns
    )
    arrow = pa.Table.from_pylist(content, schema=described)
    partitions = list(table.partitioning) or None
    folder = warehouse.folder(table.name)
    write_deltalake(folder, arrow, partition_by=partitions, mode="overwrite")


_BROKER_1 = {"node_id": 1, "node_kind": "broker"}
_TOPIC = {"topic": HOSTILE, "attributes": {"topic": HOSTILE, "node.name": "n"}}
_LIBRDKAFKA = {"client_software_name": "librdkafka", "client_instance_id": "i2", "client_id": None}

_ASKED = {"ask_metrics": "org.apache.kafka.producer.", "ask_interval_ms": 10_000, "bound": 5e3}

_SEEN = {"cluster_id": "c1", "event_time": at(0), "is_removed": False}
_LATER = {"event_time": at(60)}
_BROKER = _SEEN | {"broker_id": 1, "host": "h", "port": 9092, "is_controller": True}
_NAMED = _SEEN | {"topic_id": "t1", "topic": HOSTILE}
_REPLICA = _NAMED | {"partition": 0, "is_leader": True, "is_in_sync": True}

TOPOLOGY: dict[str, list[Row]] = {
    "brokers": [_BROKER, _BROKER | _LATER | {"rack": "az-a"}],
    "topics": [_NAMED | {"partition_count": 1}, _NAMED | _LATER | {"partition_count": 3}],
    "replicas": [
        _REPLICA | {"broker_id": 1},
        _REPLICA | {"broker_id": 2, "is_leader": False},
        _REPLICA | _LATER | {"broker_id": 2, "is_removed": True},
    ],
}

_HELD = {"throttled_requests": 2, "throttle_time_ms": 31.5, "throttled_by": "producer_byte_rate"}
_FREE = {"quota": None, "headroom": None, "quota_level": None, "bucket_client_id": HOSTILE}

_CHANGE = {"cluster_id": "c1", "event_time": at(0), "entity_type": "user", "entity_name": HOSTILE}
_CHANGE |= {"config_key": "producer_byte_rate", "operation": "SET", "config_value": "1000"}

_CHECKED = {"cluster_id": "c1", "run_id": "r1", "event_time": at(0), "suite": "requests"}
_CHECKED |= {"severity": "critical", "checked_rows": 5, "until_time": at(66)}

FILLED: dict[str, list[Row]] = {
    "quality_results": [
        _CHECKED | {"expectation": "key_unique", "success": False, "failed_rows": 2},
        _CHECKED
        | {"run_id": "r2", "event_time": at(60), "expectation": "key_unique", "success": True},
        _CHECKED
        | {"run_id": "r2", "event_time": at(60), "expectation": "max_bytes_not_negative"}
        | {"severity": "warning", "success": False, "failed_rows": 1, "from_time": at(0)},
        _CHECKED | {"suite": "quota_usage", "expectation": "usage_not_negative", "success": False},
    ],
    "plans": [_CHANGE | {"plan_id": "3f1c5e0a9b72", "number": 0}],
    "config_changes": [
        _CHANGE | {"step": step, "number": n} for n, step in enumerate(("begun", "done"))
    ],
    "quota_usage": [
        used(0, "producer_byte_rate", 900.0),
        used(11, "producer_byte_rate", 1_100.0, **_HELD),
        used(11, "consumer_byte_rate", 5e9, **_FREE),
        used(22, "request_percentage", 12.5, quota=50.0, headroom=37.5, is_estimated=True),
        used(22, "controller_mutation_rate", 1.0, broker_id=None),
        used(0, "request_percentage", 8.0, principal="User:" + HOSTILE, bucket_user=HOSTILE),
    ],
    "client_metrics": [
        delta(10, 0, 3, "producer.topic.byte.total", **_TOPIC),
        delta(20.0005, 10, 5, "producer.topic.byte.total", **_TOPIC, accepted=False),
        delta(80, 60, 4, "producer.topic.byte.total", **_TOPIC),
        delta(10, 0, 8),
        delta(10, 0, 8, payload_sha256="again"),
        delta(20, 10, -2),
        delta(30, 15, 1),
        cumulative(10, 0, 30, series_id=1, client_instance_id=None),
        cumulative(20, 0, 5, series_id=1, client_instance_id=None),
        cumulative(30.000007, 20, 9, series_id=1, client_instance_id=None),
        gauge(10, "producer.node.request.latency.avg", 8.0, **_BROKER_1),
        gauge(10, "producer.node.request.latency.max", NAN, **_BROKER_1),
        gauge(10, "producer.node.request.latency.avg", 4.0, **_BROKER_1, **_LIBRDKAFKA),
        gauge(3_700, "consumer.node.request.latency.max", 9.0, **_BROKER_1),
        gauge(10, "producer.produce.throttle.time.max", 30.0, in_catalogue=True),
        gauge(
            10,
            "shop.total",
            2.0,
            in_catalogue=False,
            resource={"service.name": HOSTILE, "otel.dropped_attributes_count": "3"},
            exemplars=[{"time": at(9), "value": 1.0, "filtered_attributes": {"a": "b"}}],
        ),
        gauge(11, "shop", 0.0, kind="histogram", histogram_count=2, histogram_bounds=[0.5]),
        gauge(12, "shop", 0.0, event_time=FAR_AHEAD),
    ],
    "requests": [
        request(5, "PRODUCE", throttle_time_ms=40.0),
        request(6, "PRODUCE", client_id=None, total_time_ms=3.0),
        request(65, "FETCH", principal="User:bob", client_id=HOSTILE, throttle_time_ms=7.5),
        request(66, "FETCH", replica_id=2),
        request(66, "METADATA", client_software_name=None),
    ],
    "telemetry_pushes": [
        push(1),
        push(1.1, route="receiver", payload_sha256="sha1", push_interval_ms=10_000),
        push(2, compression="none", wire_bytes=1_500),
        push(30, accepted=False, error_code=89),
        push(3_601, terminating=True, broker_id=2),
    ],
    "telemetry_subscriptions": [
        {**INSTANCE, "event_time": at(0), "error_code": 0, "push_interval_ms": 10_000},
        {
            **INSTANCE,
            "event_time": at(3_601),
            "client_instance_id": "i3",
            "error_code": 0,
            "push_interval_ms": 10_000,
        },
    ],
    "metric_alert_events": [
        alert(200, "opened"),
        alert(3_600, "standing", peak_value=9_000.0),
        alert(3_700, "closed", reason="cleared"),
        alert(200, "opened", alert_id="b", client_instance_id="i3", **_ASKED),
        alert(0, "closed", alert_id="b", reason="stale", event_time=FAR_AHEAD),
    ],
    "configs": [
        config(0, "metrics", "a."),
        config(0, "interval.ms", "1000"),
        config(0, "match", "client_id=x"),
        config(60, "interval.ms", "900000"),
        config(60, "match", None),
        config(0, "metrics", "b.", entity_name="quotaflow-alert-gone"),
    ],
    **TOPOLOGY,
    "client_quotas": [
        quota(0, "producer_byte_rate", 1e6, user=HOSTILE),
        quota(60, "producer_byte_rate", 2e6, user=HOSTILE, set_at=at(45), set_by="User:admin"),
        quota(0, "request_percentage", 50.5, user="alice", is_default_client_id=True),
        quota(60, "request_percentage", None, user="alice", is_default_client_id=True),
    ],
    "client_subscriptions": [
        {**INSTANCE, "subscriptions": ["all", "b"], "state": "pending"},
        {**INSTANCE, "client_instance_id": "i2", "subscriptions": ["all"], "state": "differs"},
    ],
    "settings": [
        setting("prices.currency", "EUR"),
        setting("prices.produced_per_gib", 1.0),
        setting("prices.consumed_per_gib", 2.0),
        setting("prices.cross_rack_per_gib", 8.0),
        setting("quotas.advised_users", "*"),
        setting("producer_ids.proxy", "request_percentage"),
        setting("replication.left_over_s", 60),
        setting("replication.network_bytes_per_s", 1e6),
        setting("replication.manage", "True"),
        setting("replication.capacity_bytes_per_s", "None"),
        setting("replication.brokers.2", 1e8),
        setting("replication.clean_up.User:admin", "conf"),
        setting("own_principal", "User:us"),
        setting("probe.producer_ids_rate", "refused: 42"),
    ],
    "traffic": [
        moved(5, 2**30, topic_id=None, topic="orders"),
        moved(65, 2**20, direction="consumed", client_rack="az-c", client_id=HOSTILE),
    ],
    "preferred_replicas": [
        choice(5, 2**30, client_id=HOSTILE),
        choice(65, 2**20, is_rack_inferred=True, expected_reason="no_client_rack"),
        choice(65, 2**10, topic=HOSTILE, recommended_reason="no_replica_in_rack"),
        choice(65, 2**8, broker_id=2, cross_rack_bytes=0, avoidable_bytes=0, hw_lag=7),
        choice(65, 2**9, topic=None, client_rack=None, cross_rack_bytes=None),
        *(choice(60 * n, 2**6, broker_id=2, hw_lag=10 * n, avoidable_bytes=0) for n in range(2, 7)),
    ],
    "replica_offsets": [
        *(stood(60 * n, 1, 3, answers_to_followers=9) for n in range(15)),
        *(stood(60 * n, 2, 7, follower_fetches=9) for n in range(15)),
        stood(60, 3, 3, topic_id=None, topic=HOSTILE),
    ],
    "fetch_faults": [
        fault(0, "offset_too_small", held_by_leader=1),
        fault(65, "redirect_loop", 4, broker_id=1, named_replica=2, client_id=HOSTILE),
        fault(65, "not_leader_or_follower", 3, client_id=HOSTILE),
        fault(65, "out_of_range_spin", 9, topic=None, client_id="spins"),
        fault(65, "kafka_storage_error", topic_id=None, topic=HOSTILE, client_id="other"),
    ],
    "offset_lookups": [
        lookup(30, "earliest", 3),
        lookup(65, "latest", 100, client_id=HOSTILE, requests=7),
        lookup(65, "epoch_end", 50, diverged_answers=1, client_id="cut off")
        | {"api": "OFFSET_FOR_LEADER_EPOCH"},
    ],
    "fetch_sizes": [
        fetched(5, 60, 4_096),
        fetched(65, 600, 40_960, client_id=HOSTILE, principal="User:" + HOSTILE),
        fetched(65, 64, 2**20, replica_id=2, max_bytes_fetches=60),
        fetched(65, 64, 2**20, client_id="full", filled_fetches=9, starved_fetches=9),
        fetched(65, 64, 2**20, client_id="large", oversized_batches=1),
    ],
    "rack_traffic": [
        crossed(5, 2**30),
        crossed(65, 2**20, flow="replicated", client_rack="az-c", cross_rack_bytes=2**20),
        crossed(65, 2**10, flow="produced", client_rack=None, cross_rack_bytes=None),
    ],
    "reassignment_changes": [
        reassigned(5, "requested", 2, place=0),
        reassigned(6, "requested", 3, place=1, topic=HOSTILE, client_id=HOSTILE),
        *(reassigned(6, "in_sync", n, topic=None, topic_id="t2") for n in (1, 2)),
        reassigned(7, "in_sync", 2, topic=None, topic_id="t2"),
        reassigned(7, "in_sync", 2, topic=None, topic_id="t1"),
        reassigned(8, "cancelled", None, topic="gone"),
    ],
    "replica_lag": [behind(10 * n, 3, 900 - 100 * n, 100 * n, 10_000) for n in range(4)],
    "config_alterations": [
        altered(1, "leader.replication.throttled.replicas", "0:1"),
        altered(2, "leader.replication.throttled.rate", "2000000"),
        altered(3, "leader.replication.throttled.rate", "abc", error_code=42, client_id=HOSTILE),
        altered(4, "leader.replication.throttled.replicas", None, broker_id=2),
        altered(5, "follower.replication.throttled.replicas", "*", entity_name=HOSTILE),
        altered(6, "", None, api="DELETE_TOPICS", config_key=None),
        limited(7, "producer_byte_rate", "1000000"),
        limited(8, "producer_byte_rate", None, entity_client_id="", principal="User:" + HOSTILE),
        limited(9, HOSTILE, None, entity_name=HOSTILE, client_id=HOSTILE, principal="User:us"),
        limited(10, "", None, config_key=None, entity_type=None, entity_name=None)
        | {"operation": None, "error_code": None},
    ],
    "replication_traffic": [
        replicated(5, 1, None),
        replicated(5, 1, 2, leader_throttled_bytes=6_000, behind_fetches=9, offset_lag=5),
        replicated(65, 1, 2, topic=HOSTILE, topic_id=None, bytes=60),
        replicated(65, 2, 3, topic=None, offset_lag=None),
    ],
    "replication_rates": [
        {"cluster_id": "c1", "event_time": at(n), "event_date": at(n).date(), "broker_id": 1}
        | {"side": side, "bytes": 600, "throttled_rate": 600.0, "quota": 2e6, "is_over": False}
        for n, side in ((5, "leader"), (6, "leader"), (6, "follower"))
    ],
    "replication_throttles": [
        throttled(5),
        throttled(65, is_biting=False, reason="under_rate"),
        throttled(65, side="follower", broker_id=2, peer_broker_id=1, rate=5e5),
        throttled(65, topic=HOSTILE, listed="wildcard", list_malformed=HOSTILE, is_moving=False),
        throttled(65, broker_id=9, peer_broker_id=None, reason="broker_gone", is_effective=False),
        throttled(65, partition=1, listed="unlisted", reason="rate_without_list"),
        throttled(65, topic=None, partition=None, broker_id=4, listed="unlisted", is_moving=False)
        | {"reason": "rate_without_list", "peer_broker_id": None, "in_isr": None}
        | {"offset_lag": None, "list_set_at": None, "list_set_by": None},
    ],
    "topic_names": [
        {"event_date": NOON.date(), "topic": "made between two snapshots", "requests": 2}
        | {name: _NAMED[name] for name in ("cluster_id", "event_time")}
        | {"topic_id": topic_id}
        for topic_id in ("t2", None)
    ],
    "query_progress": [
        batch(0, 0),
        batch(0.5, 0, run_id="again"),
        batch(60, 1, behind_offsets=0, state_rows=3, state_bytes=900),
        batch(120, None, input_rows=0, duration_ms=None),
        batch(0, 0, "results", behind_offsets=None, behind_files=2, behind_bytes=2**20),
    ],
    "pipeline_progress": [
        *(counted(-5, 0, outcome, 5) for outcome in ("in", "out", "left_out", "late", "failed")),
        counted(-5, 0, "quarantined", 2, reason="not_json", target="requests"),
        counted(55, 1, "out", 10, target="requests"),
        counted(30, 7, "out", 1, job="snapshot", query_id="s"),
        counted(55, 1, "lost", 3, reason="deleted_before_read"),
        counted(0, 1, "removed", 7, job="upkeep", query_id="upkeep", target="requests"),
    ],
    "quarantine": [
        {"cluster_id": "c1", "event_time": at(5), "target": "requests", "reason": "not_json"}
        | {"detail": HOSTILE, "size_bytes": 9, "source_topic": "logs", "source_offset": 7}
    ],
    "producer_id_rates": [violation("User:" + HOSTILE, NOON)],
    "producer_id_uses": [
        *(use(n / 4, n, client_id=HOSTILE, principal="User:" + HOSTILE) for n in range(12)),
        use(1, None, client_id=HOSTILE, principal="User:" + HOSTILE, produce_requests=12),
        use(5, 20, transactional_id="t", client_id=None, client_pattern=None),
        use(6, 20, transactional_id="t", allocations=0),
    ],
    "active_producers": [
        active(60, 1),
        active(90, 20),
        active(90, 30),
        active(90, 30, partition=1),
    ],
}
"""Rows of every kind that views tell apart; all numbers add up exactly in any order."""
