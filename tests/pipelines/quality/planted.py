"""Correct tables, and for each expectation in SQL a row that violates it."""

from typing import Any

from ...rows import Row, at, row

Content = dict[str, list[Row]]
SHA, OTHER_SHA = "sha-1", "sha-2"


def source(offset: int, second: float | None = None, topic: str = "logs") -> Row:
    """The source columns of a row."""
    time = at(offset if second is None else second)
    place = {"source_topic": topic, "source_partition": 0, "source_offset": offset}
    return {"cluster_id": "c1", "record_time": time, "event_time": time} | place


def counted(outcome: str, rows: int, target: str | None = None, **others: Any) -> Row:
    """A count of a batch."""
    given = {"query_id": "q", "batch_id": 0, "job": "ingest_request_log", "target": target} | others
    return row("pipeline_progress", 100, given, outcome=outcome, row_count=rows)


def of_job(job: str, **others: Any) -> Row:
    """The columns that make a count another job's."""
    return {"job": job, "query_id": job} | others


def push(offset: int, **others: Any) -> Row:
    """A push that was read."""
    row = source(offset) | {"route": "request_log", "wire_bytes": 9, "decoded_bytes": 90}
    return row | {"payload_sha256": SHA, "client_instance_id": "i1"} | others


def point(sha: str = SHA, **others: Any) -> Row:
    """A point of a push."""
    given = {"record_time": at(3), "kind": "gauge", "series_id": 7, "metric": "m"} | others
    return row("client_metrics", 1, given, payload_sha256=sha)


def replica(broker_id: int, second: float = 0, **others: Any) -> Row:
    """A replica in a snapshot."""
    given = {"is_leader": broker_id == 1, "is_in_sync": True} | others
    return row("replicas", second, given, topic="orders", broker_id=broker_id)


def advised(broker_id: int, minute: int = 0, **others: Any) -> Row:
    """A preferred read replica."""
    given = {"recommended_replica": broker_id, "recommended_reason": "follower_in_rack"}
    return row("preferred_replicas", 60 * minute, given | others)


def ids(**others: Any) -> Row:
    """New producer ids in a second."""
    counts = {"sightings": 3, "new_ids": 1, "new_ids_exact": 1, "tokens": 5.0}
    return row("producer_id_rates", 0, counts | others, kind="allocation", is_violating=False)


def used(**others: Any) -> Row:
    """The usage of a quota."""
    usage = {"usage": 5.0, "quota_bucket_usage": 9.0, "quota": 8.0, "is_over": True}
    return row("quota_usage", 0, usage | others)


def throttled(**others: Any) -> Row:
    """A throttle that bites."""
    return row("replication_throttles", 0, others, is_biting=True, is_effective=True)


def alerted(**others: Any) -> Row:
    """An alert that was closed."""
    given = {"alert_id": "a", "reason": "cleared", "first_breach": at(0), "state": "closed"}
    return row("metric_alert_events", 9, given | others)


def configured(**others: Any) -> Row:
    """A config in a snapshot."""
    return {"cluster_id": "c1", "event_time": at(0)} | others


def step(name: str, change_id: str) -> Row:
    """A step of a change."""
    return row("config_changes", 0, {}, run_id="r", change_id=change_id, step=name)


GOOD: Content = {
    "requests": [
        source(1) | {"api": "PRODUCE"},
        source(2) | {"api": "PUSH_TELEMETRY"},
        source(5) | {"api": "FETCH"},
    ],
    "telemetry_pushes": [
        push(1),
        push(2),
        push(4, decoded_bytes=None, unreadable_reason="bad_zstd", payload_sha256=None),
    ],
    "client_metrics": [point(), point(record_time=at(90), event_time=at(2))],
    "quarantine": [
        source(0) | {"target": "requests", "reason": "no_json"},
        source(4) | {"target": "client_metrics", "reason": "bad_zstd"},
    ],
    "fetches": [source(5)],
    "pipeline_progress": [
        counted("in", 6),
        counted("lost", 2, reason="deleted_before_read", query_id="a /lost"),
        counted("out", 3, "requests"),
        counted("left_out", 2, reason="own"),
        counted("quarantined", 1, "requests", reason="no_json"),
        counted("out", 3, "telemetry_pushes"),
        counted("quarantined", 1, "client_metrics", reason="bad_zstd"),
        counted("in", 4, **of_job("ingest_receiver")),
        counted("out", 4, "telemetry_pushes", **of_job("ingest_receiver")),
        counted("in", 4, "client_metrics", **of_job("client_metrics")),
        counted("left_out", 3, "client_metrics", **of_job("client_metrics")),
        counted("left_out", 99, "client_metrics", **of_job("client_metrics"), reason="same_point"),
        counted("in", 1, "fetches", **of_job("fetches")),
        counted("out", 1, "fetches", **of_job("fetches")),
        counted("in", 0, "client_quotas", **of_job("snapshot")),
    ],
    "producer_id_rates": [ids(), ids(tokens=-1.0, is_violating=True), ids(kind="activation")],
    "quota_usage": [
        used(),
        used(client_id="a", quota=None, is_over=None),
        used(client_id="b", rolled_up_s=60, throttled_by=None),
        used(client_id="b", rolled_up_s=60, throttled_by="request_percentage"),
    ],
    "replicas": [replica(1), replica(2), replica(2, 200, is_in_sync=False)],
    "preferred_replicas": [
        advised(2, 2),
        advised(2, -5),  # before the first snapshot, which is all that is known
        advised(3, recommended_reason="leader_in_rack"),
        advised(2) | {"recommended_replica": None, "eligible_replicas": [2]},
    ],
    "replication_throttles": [throttled(), throttled(is_biting=False, reason="in_isr")],
    "metric_alert_events": [alerted(), alerted(state="opened", reason=None)],
    "configs": [
        configured(is_sensitive=True, config_key="k"),
        configured(is_sensitive=False, config_value="v"),
    ],
    "config_changes": [step("begun", "a"), step("done", "a")],
}

BAD: dict[tuple[str, str], list[Row]] = {
    ("requests", "event_time_near_record_time"): [
        source(9) | {"event_time": at(70), "record_time": at(9)}
    ],
    ("requests", "shipped_in_time"): [source(9) | {"event_time": at(-3_700), "record_time": at(9)}],
    ("requests", "every_offset_counted"): [source(9)],
    ("requests", "pushes_went_on"): [
        source(3) | {"api": "PUSH_TELEMETRY", "source_topic": "other"}
    ],
    ("telemetry_pushes", "readable_or_why"): [push(8, decoded_bytes=None)],
    ("telemetry_pushes", "unreadable_quarantined"): [push(3, unreadable_reason="bad_zstd")],
    ("telemetry_pushes", "points_decoded"): [push(8, payload_sha256=OTHER_SHA)],
    ("client_metrics", "point_unique"): [point()],
    ("client_metrics", "push_known"): [point("of nobody")],
    ("pipeline_progress", "row_count_positive"): [
        counted("out", 0, "requests", **of_job("snapshot"))
    ],
    ("pipeline_progress", "lines_reconcile"): [counted("in", 1)],
    ("pipeline_progress", "pushes_reconcile"): [counted("in", 1, **of_job("ingest_otlp"))],
    ("pipeline_progress", "payloads_reconcile"): [
        counted("late", 2, "client_metrics", **of_job("client_metrics"))
    ],
    ("pipeline_progress", "fetches_reconcile"): [
        counted("in", 1, "fetches", **of_job("fetches", batch_id=1))
    ],
    ("quarantine", "every_row_counted"): [
        source(n) | {"target": "requests", "reason": "no_json"} for n in (6, 7)
    ],
    ("fetches", "request_known"): [source(77)],
    ("producer_id_rates", "filter_forgets_nothing"): [ids(new_ids=2)],
    ("producer_id_rates", "throttled_when_violating"): [ids(is_violating=True)],
    ("quota_usage", "own_usage_within_shared"): [used(client_id="c", is_over=False)],
    ("quota_usage", "window_counted_once"): [used(client_id="b")],
    ("preferred_replicas", "recommended_in_isr"): [advised(2, 5)],
    ("replicas", "one_leader"): [replica(3, is_leader=True)],
    ("replication_throttles", "biting_is_effective"): [throttled(is_effective=False)],
    ("metric_alert_events", "breach_before_event"): [alerted(first_breach=at(10))],
    ("configs", "no_sensitive_value"): [configured(is_sensitive=True, config_value="v")],
    ("config_changes", "begun_has_an_end"): [step("begun", "b")],
}
