"""Rows of tables, made of their declarations: what a test does not name is the same everywhere."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules.diagnosis import LEAST_PART_MS

from .delta_tables import NOON

Row = dict[str, Any]
LIMITERS = (
    *("max_bytes", "broker_cap", "quota_window", "partition_max_bytes", "first_batch"),
    *("drained", "wait_timeout", "throttled", "redirected", "error"),
)
"""What bounds an answer to a fetch."""
KAFKA = "org.apache.kafka."
LONG_AGO, FAR_AHEAD = NOON.replace(year=2020), NOON.replace(year=2500)
NAN, INFINITE = float("nan"), float("inf")
HOSTILE = "'; DROP TABLE requests; --\\\n\u202e%_"

SOFTWARE = {
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_address": "10.0.0.7",
}
CLIENT = {
    "cluster_id": "c1",
    "principal": "User:alice",
    "client_id": "orders",
    **SOFTWARE,
    "broker_id": 1,
}
INSTANCE = {**CLIENT, "client_instance_id": "i1"}
REASSIGNER = {"principal": "User:admin", "client_id": "reassign-partitions-tool"}
PLAIN: Mapping[str, Any] = {
    "cluster_id": "c1",
    "principal": "User:alice",
    "client_id": "orders",
    "broker_id": 1,
    "topic": "orders",
    "topic_id": "t1",
    "partition": 0,
    "is_removed": False,
    "source_topic": "log",
    "source_partition": 0,
}
"""What every table has of these columns, where its rows need them."""

NEEDED = ("cluster_id", "principal", "client_id", "broker_id", "is_removed")
"""Columns that rows need also where they are no part of the key."""

NOBODY = {"client_quotas": {"client_id"}, "config_changes": {"broker_id"}}
"""Columns whose plain value says that there is none."""


def at(second: float) -> datetime:
    """A time that many seconds after noon."""
    return NOON + timedelta(seconds=second)


def minute_of(second: float) -> datetime:
    """The start of the minute which has that second after noon."""
    return at(second // 60 * 60)


def minute(row: Row) -> int:
    """How many minutes after noon a row of a result is."""
    since_noon: timedelta = row["event_time"] - NOON
    return since_noon // timedelta(minutes=1)


def row(table: str, time: float | datetime, given: Row, /, **values: Any) -> Row:
    """A row of a table at a time, or so many seconds after noon.

    `given` takes the place of `values`. Columns that neither names are as in PLAIN if the row needs
    them, else null. The date is that of the time, and an offset of a topic is the time in ms. A
    column that the table lacks is an error.
    """
    columns, plain = _declared(table)
    named = values | given
    unknown = named.keys() - columns
    assert not unknown, f"{table} has no {', '.join(sorted(unknown))}"
    moment = time if isinstance(time, datetime) else at(time)
    made: Row = {**plain, TABLES[table].time: moment} | named
    if "event_date" in columns and "event_date" not in named:
        made["event_date"] = made["event_time"].date()
    if "source_offset" in columns and "source_offset" not in named:
        made["source_offset"] = (moment - NOON) // timedelta(milliseconds=1)
    return made


@cache
def _declared(table: str) -> tuple[frozenset[str], Row]:
    """The columns of a table, and plain values of those that a row needs."""
    declared = TABLES[table]
    columns = frozenset(declared.column_names)
    needed = (columns & {*declared.key, *NEEDED}) - NOBODY.get(table, set())
    return columns, {name: value for name, value in PLAIN.items() if name in needed}


def gauge(second: float, metric: str, value: float, **others: Any) -> Row:
    """A reading a client pushed."""
    return row(
        "client_metrics",
        second,
        INSTANCE | others,
        metric=KAFKA + metric,
        kind="gauge",
        value=value,
        series_id=hash_of(metric, **others),
        accepted=True,
        payload_sha256=f"sha{second}",
    )


SENT = "producer.record.send.total"


def delta(
    second: float, start: float | None, value: float, metric: str = SENT, **others: Any
) -> Row:
    """A sum as Kafka's clients send it: what came since its start."""
    time_range = {"start_time": None if start is None else at(start)}
    kind = {"kind": "sum", "temporality": "delta", "is_monotonic": True}
    return gauge(second, metric, value, **others) | time_range | kind | others


def cumulative(second: float, start: float | None, value: float, **others: Any) -> Row:
    """A sum as a Collector may send it: what came since the process began."""
    return delta(second, start, value, **({"temporality": "cumulative"} | others))


def hash_of(metric: str, **others: Any) -> int:
    """A series_id as far as a test needs one."""
    parts = (
        metric,
        *(str(others.get(name)) for name in ("client_instance_id", "topic", "node_id")),
    )
    digits = (ord(letter) * int(31**i) for i, letter in enumerate("/".join(parts)))
    return sum(digits) % 2**62


def request(second: float, api: str, **others: Any) -> Row:
    """A request a broker completed."""
    given = SOFTWARE | others
    return row("requests", second, given, api=api, total_time_ms=2.0, throttle_time_ms=0.0)


def waits(*each_ms: float) -> list[dict[str, int]]:
    """The histogram of requests that waited so long, as request_times has it."""
    buckets = Counter(math.ceil(8 * math.log2(ms)) - 1 for ms in each_ms)
    return [{"bucket": bucket, "requests": n} for bucket, n in sorted(buckets.items())]


def part_waits(parts: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """The histograms of what requests waited in each part, as request_times has them."""
    return [
        {"part": part, **counted}
        for part, each_ms in sorted(parts.items())
        for counted in waits(*(ms for ms in each_ms if ms >= LEAST_PART_MS))
    ]


def times(second: float, api: str, requests: int = 10, *, each: Row, **others: Any) -> Row:
    """A minute of request_times: so many requests, with the mean time in ms of some parts.

    `each` names parts as local_time_ms; those that it does not name took no time.
    """
    parts = ("request_queue", "local", "remote", "response_queue", "send", "unknown", "throttle")
    sums = {f"{part}_time_ms": requests * each.get(part, 0.0) for part in parts}
    unknown = each.keys() - {*parts}
    assert not unknown, f"no such part: {unknown}"
    throttle = sums["throttle_time_ms"]
    total = sum(sums.values()) - throttle
    waits_for_others = api in {"FETCH", "SHARE_FETCH"}
    waited = total + throttle - sums["remote_time_ms"] * waits_for_others
    unread = {"unknown", "throttle", *(["remote"] if waits_for_others else [])}
    in_parts = {part: [ms] * requests for part, ms in each.items() if part not in unread}
    given = {
        "waited_time_ms": waited,
        "waited_histogram": waits(*[waited / requests] * requests) if waited else None,
        "part_histograms": part_waits(in_parts),
        "total_time_ms": total,
        "longest_time_ms": total / requests,
        "timed_requests": requests,
        "throttled_requests": requests if throttle else 0,
        "bytes": 1_000 * requests,
        "batches": requests,
        "software": [
            {
                "name": "apache-kafka-java",
                "version": "3.5.0",
                "requests": requests,
                "first_seen": at(second),
                "last_seen": at(second),
            }
        ],
    }
    return row(
        "request_times", minute_of(second), sums | given | others, api=api, request_count=requests
    )


def push(second: float, **others: Any) -> Row:
    """A push as the request log has it."""
    return row(
        "telemetry_pushes",
        second,
        INSTANCE | others,
        accepted=True,
        error_code=0,
        terminating=False,
        compression="zstd",
        wire_bytes=100,
        decoded_bytes=1_000,
        payload_sha256=f"sha{second}",
        route="request_log",
    )


def alert(second: float, state: str, **others: Any) -> Row:
    """An event of an alert on a reading, some seconds after LONG_AGO."""
    return row(
        "metric_alert_events",
        LONG_AGO + timedelta(seconds=second),
        INSTANCE | others,
        event_date=LONG_AGO.date(),
        alert_id="a",
        rule="slow",
        metric="org.apache.kafka.producer.record.queue.time.avg",
        state=state,
        first_breach=LONG_AGO,
        value=6_000.0,
        peak_value=7_000.0,
        attributes={"topic": "t"},
    )


def fresh(now: datetime) -> list[Row]:
    """Rows of pipeline_progress by which all is of now that a plan stands on, but for telemetry."""
    source: list[tuple[str, str | None]] = [("ingest_request_log", None), ("request_results", None)]
    source += [("snapshot", "configs"), ("snapshot", "client_quotas")]
    return [
        row("pipeline_progress", now, {}, outcome="in", row_count=1, job=job, target=target)
        for job, target in source
    ]


def batch(second: float, batch_id: int | None, job: str = "facts", **others: Any) -> Row:
    """A micro-batch as Spark told it; without a number nothing new was there."""
    ids = {"job": job, "query_id": "q-" + job, "run_id": "r1", "batch_id": batch_id}
    counts = {"input_rows": 10, "processed_rows_per_s": 5.0, "duration_ms": 2_000}
    return row("query_progress", second, ids | counts | {"behind_offsets": 7} | others)


def counted(second: float, batch_id: int, outcome: str, n: int, **others: Any) -> Row:
    """What a job counted in one of its batches."""
    ids = {"job": "facts", "query_id": "q-facts", "batch_id": batch_id}
    return row("pipeline_progress", second, ids | others, outcome=outcome, row_count=n)


def config(second: float, key: str, value: str | None, **others: Any) -> Row:
    """A config of a client-metrics resource as a snapshot saw it; gone without a value."""
    entity = {"entity_type": "client-metrics", "entity_name": "all", "config_key": key}
    given = entity | {"config_value": value, "is_removed": value is None} | others
    return row("configs", second, given)


def broker_config(key: str, value: str | None, second: float = 0, **others: Any) -> Row:
    """A config of broker 1."""
    return config(second, key, value, **{"entity_type": "broker", "entity_name": "1"} | others)


def quota(second: float, key: str, quota: float | None, **others: Any) -> Row:
    """A client quota as a snapshot saw it; gone without a quota."""
    nobody = {f"is_default_{part}": False for part in ("user", "client_id", "ip")}
    given = nobody | {"is_removed": quota is None} | others
    return row("client_quotas", second, given, config_key=key, quota=quota)


def setting(key: str, value: object, second: float = 0, **others: Any) -> Row:
    """A value of conf as a snapshot found it."""
    return row("settings", second, others, setting=key, setting_value=str(value))


def moved(second: float, size: int, **others: Any) -> Row:
    """Bytes a client produced, as `traffic` counts them."""
    return row("traffic", second, others, topic=None, direction="produced", bytes=size)


def use(second: float, producer_id: int | None, **others: Any) -> Row:
    """A producer id a broker gave a client, or with None what that client produced."""
    return row(
        "producer_id_uses",
        minute_of(second),
        SOFTWARE | others,
        client_pattern="orders",
        producer_id=producer_id,
        first_seen=at(second),
        last_seen=at(second),
        requests=1,
        allocations=int(producer_id is not None),
        produce_requests=0,
    )


def active(second: float, producer_id: int, wrote_s: float | None = None, **others: Any) -> Row:
    """What a snapshot saw a leader hold of a producer id; it wrote just then, or at `wrote_s`."""
    wrote = at(second if wrote_s is None else wrote_s)
    ids = {"topic": "t", "producer_id": producer_id, "last_timestamp": wrote}
    return row("active_producers", second, ids | others)


def used(second: float, quota_type: str, usage: float, **others: Any) -> Row:
    """What a client used of a quota of its user, as `quota_usage` tells it."""
    return row(
        "quota_usage",
        second,
        others,
        quota_type=quota_type,
        usage=usage,
        quota_bucket_usage=usage,
        quota_bucket_user="alice",
        quota_level=3,
        quota=1_000.0,
        headroom=1_000.0 - usage,
        is_over=usage > 1_000.0,
        request_count=10,
        throttled_requests=0,
        throttle_time_ms=0.0,
        is_estimated=False,
        enforcement="stock",
    )


def fetched(second: float, fetches: int, size: int, **others: Any) -> Row:
    """A minute of fetch_sizes in which every fetch brought records."""
    counts = [f"{name}_fetches" for name in (*LIMITERS, "filled", "starved", "max_starved")]
    counts += ["first_partitions", "starved_partitions", "oversized_batches"]
    limits = {"max_bytes": 2**20, "partition_max_bytes": 2**16, "bound_bytes": 2**18}
    limits |= {"min_bytes": 1, "max_wait_ms": 500, "partitions": 4}
    sizes = {"fetches": fetches, "bytes": size, "max_response_bytes": size}
    given = dict.fromkeys(counts, 0) | limits | sizes | others
    return row("fetch_sizes", minute_of(second), given)


def read_remotely(second: float, size: int, **others: Any) -> Row:
    """A minute of remote_reads: two answers from remote storage."""
    read = {"fetches": 2, "bytes": size, "fetch_time_ms": 20.0, "min_fetch_offset": 50}
    read |= {"empty_fetches": 0, "over_quota_fetches": 0, "empty_time_ms": 0.0}
    return row("remote_reads", minute_of(second), read | others, local_log_start_offset=90)


def crossed(second: float, size: int, **others: Any) -> Row:
    """A minute of rack_traffic: read in az-b of a broker in az-a."""
    racks = {"client_rack": "az-b", "is_rack_inferred": False, "broker_rack": "az-a"}
    counts = {"requests": 1, "bytes": size, "cross_rack_bytes": size}
    return row("rack_traffic", minute_of(second), racks | counts | others, flow="consumed")


def choice(second: float, size: int, **others: Any) -> Row:
    """What a consumer in az-b read across racks from leader 1, though replica 2 is nearer."""
    return row(
        "preferred_replicas",
        second,
        others,
        client_rack="az-b",
        is_rack_inferred=False,
        broker_rack="az-a",
        leader_id=1,
        leader_rack="az-a",
        api_version=17,
        bytes=size,
        fetches=1,
        redirects=0,
        eligibility="known",
        expected_replica=2,
        expected_reason="follower_in_rack",
        recommended_replica=2,
        recommended_reason="follower_in_rack",
        eligible_replicas=[2],
        cross_rack_bytes=size,
        avoidable_bytes=size,
    )


def reassigned(second: float, change: str, replica_id: int | None, **others: Any) -> Row:
    """What admin asked of partition 0 of orders."""
    given = REASSIGNER | {"topic_id": None, "replica_id": replica_id} | others
    return row("reassignment_changes", second, given, change=change, error_code=0)


def behind(second: float, replica_id: int, lag: int, offset: int, size: int, **others: Any) -> Row:
    """Ten seconds of a follower that has so many offsets left of partition 0 of orders."""
    offsets = {"first_offset": offset, "last_offset": offset, "high_watermark": offset + lag}
    lags = {"lag": lag, "max_lag": lag, "last_time": at(second + 9)}
    given = {"topic": None, "replica_id": replica_id, "fetches": 1, "bytes": size}
    given |= {"last_bytes": size}
    return row("replica_lag", second, given | offsets | lags | others)


def fault(second: float, kind: str, answers: int = 1, **others: Any) -> Row:
    """A minute of fetch_faults: what broker 2, a follower, answered to a consumer."""
    software = {name: SOFTWARE[name] for name in SOFTWARE if name != "client_address"}
    offsets = {"min_fetch_offset": 5, "max_fetch_offset": 5, "leader_id": 1}
    given = software | offsets | {"broker_id": 2} | others
    return row("fetch_faults", minute_of(second), given, fault=kind, answers=answers)


def replica_minute(second: float, broker_id: int, log_start_offset: int, **others: Any) -> Row:
    """A minute of replica_offsets: where a replica's log began, and its high watermark."""
    answers = {"answers": 1, "answers_to_followers": 0, "follower_fetches": 0}
    starts = dict.fromkeys(("min_log_start_offset", "max_log_start_offset"), log_start_offset)
    ends = {"min_high_watermark": 100, "max_high_watermark": 100}
    given = {"broker_id": broker_id} | answers | starts | ends | others
    return row("replica_offsets", minute_of(second), given)


def lookup(second: float, position: str, last_offset: int | None, **others: Any) -> Row:
    """A minute of offset_lookups: what the leader answered to a client."""
    answer = {"error_code": 0, "requests": 1, "last_offset": last_offset, "diverged_answers": 0}
    given = answer | {"api": "LIST_OFFSETS", "position": position} | others
    return row("offset_lookups", minute_of(second), given)


def altered(second: float, key: str, value: str | None, **others: Any) -> Row:
    """A config of a topic or broker that admin set, or without a value removed."""
    entity = ("broker", "1") if key.endswith("rate") else ("topic", "orders")
    given: Row = dict(zip(("entity_type", "entity_name"), entity, strict=True))
    given |= {"api": "INCREMENTAL_ALTER_CONFIGS", "error_code": 0, "position": 0}
    given |= REASSIGNER | {"client_software_name": "apache-kafka-java"}
    given |= {"config_key": key, "config_value": value, "operation": "SET" if value else "DELETE"}
    return row("config_alterations", second, given | others, source_offset=int(second))


def limited(second: float, key: str, value: str | None, **others: Any) -> Row:
    """A quota of alice that admin set, or without a value removed."""
    given = {"api": "ALTER_CLIENT_QUOTAS", "client_id": "adminclient-1", "entity_type": "user"}
    return altered(second, key, value, **given | {"entity_name": "alice"} | others)


def replicated(second: float, leader_id: int, follower_id: int | None, **others: Any) -> Row:
    """A minute in which a follower read partition 0 of orders; with None, clients wrote it."""
    counts = ("leader_throttled_bytes", "follower_throttled_bytes", "behind_fetches")
    given: Row = dict.fromkeys((*counts, "stalled_fetches", "omitted_fetches"), 0)
    given |= {"leader_id": leader_id, "follower_id": follower_id, "fetches": 10, "bytes": 6_000}
    given |= {"offset_lag": None if follower_id is None else 0}
    return row("replication_traffic", minute_of(second), given | others)


def throttled(second: float, **others: Any) -> Row:
    """A minute in which broker 1 holds back follower 2, which is moved to, on partition 0."""
    setter = {"set_at": at(0), "set_by": "User:admin", "set_by_client_id": "tool"}
    given: Row = {
        f"{source}_{name}": value for source in ("list", "rate") for name, value in setter.items()
    }
    given |= {"side": "leader", "peer_broker_id": 2, "listed": "entry", "rate": 2e6}
    given |= {"rate_source": "dynamic_broker", "is_configured": True, "is_moving": True}
    given |= {"in_isr": False, "offset_lag": 5, "bytes": 6_000}
    given |= {"is_effective": True, "is_biting": True} | others
    return row("replication_throttles", minute_of(second), given)
