"""Rows of tables as views meet them: what each test does not name is the same everywhere."""

from datetime import datetime, timedelta
from typing import Any

from quotaflow.schemas.tables.fetch_sizes import LIMITERS

from ...delta_tables import NOON

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
    time_range = {"start_time": None if start is None else at(start)}
    return row | time_range | {"kind": "sum", "temporality": "delta", "is_monotonic": True} | others


def cumulative(second: float, start: float | None, value: float, **others: Any) -> Row:
    """A sum as a Collector may send it: what came since the process began."""
    return delta(second, start, value, **({"temporality": "cumulative"} | others))


def hash_of(metric: str, **others: Any) -> int:
    """A series_id as far as a test needs one."""
    parts = (
        metric,
        *(str(others.get(name)) for name in ("client_instance_id", "topic", "node_id")),
    )
    return sum(ord(letter) * 31**i for i, letter in enumerate("/".join(parts))) % 2**62


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


def fresh(now: datetime) -> list[Row]:
    """Rows of pipeline_progress by which all is of now that a plan stands on, but for telemetry."""
    row = {"cluster_id": "c1", "event_time": now, "outcome": "in", "row_count": 1}
    source = [("ingest_request_log", None), ("request_results", None)]
    source += [("snapshot", "configs"), ("snapshot", "client_quotas")]
    return [row | {"job": job, "target": target} for job, target in source]


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
    row |= {
        "usage": usage,
        "quota_bucket_usage": usage,
        "quota_bucket_user": "alice",
        "quota_level": 3,
    }
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
    row |= {"starved_partitions": 0, "max_starved_fetches": 0, "oversized_batches": 0}
    return row | others


def read_remotely(second: float, size: int, **others: Any) -> Row:
    """A minute of remote_reads: two answers from remote storage."""
    minute = at(second // 60 * 60)
    row = {"cluster_id": "c1", "event_date": minute.date(), "event_time": minute, "broker_id": 1}
    row |= {"principal": "User:alice", "client_id": "orders", "topic": "orders"}
    row |= {"partition": 0, "fetches": 2, "bytes": size, "fetch_time_ms": 20.0, "empty_fetches": 0}
    row |= {"over_quota_fetches": 0, "empty_time_ms": 0.0, "min_fetch_offset": 50}
    return row | {"local_log_start_offset": 90, "fetch_quota": None} | others


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


def replica_minute(second: float, broker_id: int, log_start_offset: int, **others: Any) -> Row:
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
    row |= {"stalled_fetches": 0, "omitted_fetches": 0}
    return row | ({} if follower_id is None else {"offset_lag": 0}) | others


def throttled(second: float, **others: Any) -> Row:
    """A minute in which broker 1 holds back follower 2, which is moved to, on partition 0."""
    minute = at(second // 60 * 60)
    row = {"cluster_id": "c1", "event_time": minute, "event_date": minute.date()}
    row |= {"topic": "orders", "partition": 0, "side": "leader", "broker_id": 1}
    row |= {"peer_broker_id": 2, "listed": "entry", "rate": 2e6, "rate_source": "dynamic_broker"}
    setter = {"set_at": at(0), "set_by": "User:admin", "set_by_client_id": "tool"}
    row |= {
        f"{source}_{name}": value for source in ("list", "rate") for name, value in setter.items()
    }
    row |= {"is_configured": True, "is_moving": True, "in_isr": False, "offset_lag": 5}
    return row | {"bytes": 6_000, "is_effective": True, "is_biting": True} | others
