"""Rows of every table, such that every view has some: whoever adds a view adds rows here."""

from ...delta_tables import NOON, violation
from ...rows import (
    FAR_AHEAD,
    HOSTILE,
    INSTANCE,
    NAN,
    Row,
    active,
    alert,
    altered,
    at,
    batch,
    behind,
    broker_config,
    choice,
    config,
    counted,
    crossed,
    cumulative,
    delta,
    fault,
    fetched,
    gauge,
    limited,
    lookup,
    moved,
    push,
    quota,
    read_remotely,
    reassigned,
    replica_minute,
    replicated,
    request,
    setting,
    throttled,
    times,
    use,
    used,
)
from . import group_snapshot_rows
from .group_rows import GROUPS

_BROKER_1 = {"node_id": 1, "node_kind": "broker"}
_TOPIC = {"topic": HOSTILE, "attributes": {"topic": HOSTILE, "node.name": "n"}}
_LIBRDKAFKA = {"client_software_name": "librdkafka", "client_instance_id": "i2", "client_id": None}

_SUBSCRIBED = {
    "subscribe_metrics": "org.apache.kafka.producer.",
    "subscribe_interval_ms": 10_000,
    "bound": 5e3,
}

_SEEN = {"cluster_id": "c1", "event_time": at(0), "is_removed": False}
_LATER = {"event_time": at(60)}
_BROKER = _SEEN | {"broker_id": 1, "host": "h", "port": 9092, "is_controller": True}
_NAMED = _SEEN | {"topic_id": "t1", "topic": HOSTILE}
_REPLICA = _NAMED | {"partition": 0, "is_leader": True, "is_in_sync": True}

TOPOLOGY: dict[str, list[Row]] = {
    "brokers": [_BROKER, _BROKER | _LATER | {"rack": "az-a"}],
    "topics": [
        _NAMED | {"partition_count": 1},
        _NAMED | _LATER | {"partition_count": 3},
        _NAMED | {"topic_id": "t9", "topic": "unused", "partition_count": 1, "is_internal": False},
    ],
    "replicas": [
        _REPLICA | {"broker_id": 1},
        _REPLICA | {"broker_id": 2, "is_leader": False},
        _REPLICA | _LATER | {"broker_id": 2, "is_removed": True},
        _REPLICA | {"topic_id": "t9", "topic": "unused", "broker_id": 1},
        _REPLICA | {"broker_id": 4, "is_leader": False, "is_in_sync": False},
    ],
}

_LOG = _SEEN | {"topic": HOSTILE, "partition": 0, "broker_id": 1, "log_dir": "/data"}
_LOG |= {"size_bytes": 1_000, "offset_lag": 0, "is_future": False}
_LEFT = {"entity_type": "topic", "entity_name": "unused", "config_source": "DYNAMIC_TOPIC_CONFIG"}

_LIMITED = {"throttled_requests": 2, "throttle_time_ms": 31.5, "throttled_by": "producer_byte_rate"}
_FREE = {"quota": None, "headroom": None, "quota_level": None, "quota_bucket_client_id": HOSTILE}

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
    "plans": [_CHANGE | {"plan_id": "3f1c5e0a9b72d4e81c06", "number": 0}],
    "config_changes": [
        _CHANGE | {"step": step, "number": n, "purpose": "apply"}
        for n, step in enumerate(("begun", "done"))
    ],
    "quota_usage": [
        used(0, "producer_byte_rate", 900.0),
        used(11, "producer_byte_rate", 1_100.0, **_LIMITED),
        used(11, "consumer_byte_rate", 5e9, **_FREE),
        used(22, "request_percentage", 12.5, quota=50.0, headroom=37.5, is_estimated=True),
        used(22, "controller_mutation_rate", 1.0, broker_id=None),
        used(
            22,
            "consumer_byte_rate",
            0.0,
            principal="User:bob",
            share_requests=9,
            is_lower_bound=True,
        )
        | {"throttled_requests": 2, "throttle_time_ms": 9_658.0}
        | {"throttled_by": "consumer_byte_rate", "is_estimated": True},
        used(0, "request_percentage", 8.0, principal="User:" + HOSTILE, quota_bucket_user=HOSTILE),
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
        gauge(
            66,
            "consumer.fetch.manager.preferred.read.replica",
            2.0,
            topic="orders",
            partition=0,
            client_id=HOSTILE,
        ),
        gauge(11, "shop", 0.0, kind="histogram", histogram_count=2, histogram_bounds=[0.5]),
        gauge(12, "shop", 0.0, event_time=FAR_AHEAD),
    ],
    "requests": [
        request(5, "PRODUCE", throttle_time_ms=40.0, api_version=2),
        request(6, "PRODUCE", client_id=None, total_time_ms=3.0),
        request(65, "FETCH", principal="User:bob", client_id=HOSTILE, throttle_time_ms=7.5),
        request(66, "FETCH", replica_id=2),
        request(66, "METADATA", client_software_name=None, client_id="quotaflow-admin"),
        request(67, "METADATA", body='{"topics":[{"errorCode":29,"name":"secret"}]}'),
        request(67, "CREATE_TOPICS", body="{}", error_code=36, connection_id="c-1", weight=1.0),
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
        alert(3_600, "still_open", peak_value=9_000.0),
        alert(3_700, "closed", reason="cleared"),
        alert(200, "opened", alert_id="b", client_instance_id="i3", **_SUBSCRIBED),
        alert(0, "closed", alert_id="b", reason="stale", event_time=FAR_AHEAD),
        alert(200, "opened", alert_id="c", rule="lag", watched="group_lag"),
    ],
    "configs": [
        config(0, "metrics", "a."),
        config(0, "interval.ms", "1000"),
        config(0, "match", "client_id=x"),
        config(60, "interval.ms", "900000"),
        config(60, "match", None),
        config(0, "metrics", "b.", entity_name="quotaflow-alert-gone"),
        config(0, "leader.replication.throttled.replicas", "0:1", **_LEFT),
        broker_config("client.quota.callback.class", "C"),
        config(0, "cordoned.log.dirs", "*", entity_type="broker", entity_name="9"),
    ],
    **TOPOLOGY,
    **GROUPS,
    "replica_sizes": [
        _LOG,
        _LOG | {"broker_id": 3, "event_time": at(30), "size_bytes": 100},
        _LOG | {"broker_id": 3, "event_time": at(60), "size_bytes": 400},
        _LOG | {"topic": "unused"},
        _LOG | {"topic": "unused", "event_time": at(30), "size_bytes": 3_000},
    ],
    "moving_replicas": [
        _SEEN | {"topic": HOSTILE, "partition": 0, "broker_id": 3, "role": "adding"},
        _SEEN | {"topic": HOSTILE, "partition": 0, "broker_id": 1, "role": "removing"},
    ],
    "client_quotas": [
        quota(0, "producer_byte_rate", 1e6, user=HOSTILE),
        quota(60, "producer_byte_rate", 2e6, user=HOSTILE, set_at=at(45), set_by="User:admin"),
        quota(0, "consumer_byte_rate", 3e6, user="alice"),
        quota(0, "request_percentage", 50.5, user="alice", is_default_client_id=True),
        quota(60, "request_percentage", None, user="alice", is_default_client_id=True),
    ],
    "groups": [group_snapshot_rows.group(0, group_id=HOSTILE)],
    "group_assignments": [
        group_snapshot_rows.assigned("m", 0, topic=HOSTILE, group_id=HOSTILE, client_id=HOSTILE)
    ],
    "group_offsets": [
        group_snapshot_rows.committed(second, offset, group_id=HOSTILE, topic=HOSTILE)
        for second, offset in ((0, 100), (60, 120))
    ],
    "partition_offsets": [
        group_snapshot_rows.ended(second, offset, topic=HOSTILE)
        for second, offset in ((0, 100), (60, 200))
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
        setting("prices.remote_read_per_gib", 4.0),
        setting("prices.stored_per_gib_month", 730.0),
        setting("quotas.advised_users", "*"),
        setting("replication.stale_throttle_s", 60),
        setting("replication.network_bytes_per_s", 1e6),
        setting("replication.manage", "true"),
        setting("replication.brokers.2", 1e8),
        setting("replication.cleanup.User:admin", "conf"),
        setting("own_principal", "User:us"),
        setting("excluded.User:us", "own"),
        setting("probe.producer_ids_rate", "refused: 42"),
        setting("producer_ids.max_heap_bytes", 1_000),
    ],
    "request_times": [
        times(5, "PRODUCE", each={"local": 2.0}),
        times(5, "PRODUCE", each={"throttle": 400.0}, client_id=HOSTILE),
        times(65, "FETCH", each={"remote": 500.0, "send": 1.0}, client_id=HOSTILE)
        | {"software": [{"name": "librdkafka", "version": "1.9", "requests": 1}]},
        times(65, "PRODUCE", each={"local": 1.0}, client_id=None)
        | {"errors": [{"error_code": 29, "requests": 1}]}
        | {"error_resources": [{"error_code": 29, "resource": name} for name in (HOSTILE, "t1")]},
    ],
    "traffic": [
        moved(5, 2**30, topic_id=None, topic="orders"),
        moved(5, 2**20, client_id=HOSTILE, topic=HOSTILE, broker_rack="az-b", client_rack="az-a")
        | {"is_rack_inferred": True, "rack_source": "client_id"},
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
        *(replica_minute(60 * n, 1, 3, answers_to_followers=9) for n in range(15)),
        *(replica_minute(60 * n, 2, 7, follower_fetches=9) for n in range(15)),
        replica_minute(60, 3, 3, topic_id=None, topic=HOSTILE),
    ],
    "fetch_faults": [
        fault(0, "offset_too_small", answers_leader_has=1),
        fault(65, "redirect_loop", 4, broker_id=1, preferred_read_replica=2, client_id=HOSTILE),
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
        fetched(65, 64, 2**20, replica_id=2, principal="User:broker", max_bytes_fetches=60),
        fetched(65, 64, 2**20, client_id="full", filled_fetches=9, starved_fetches=9),
        fetched(65, 64, 2**20, client_id="large", oversized_batches=1),
    ],
    "remote_reads": [
        read_remotely(5, 2**30, topic=HOSTILE, min_fetch_offset=150),
        read_remotely(65, 2**20, client_id=HOSTILE, empty_fetches=4, over_quota_fetches=4),
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
        limited(8, "producer_byte_rate", None, entity_client_id="", principal="User:op" + HOSTILE),
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
    "fetches": [
        {name: _NAMED[name] for name in ("cluster_id", "event_time")}
        | {"partitions": [{"topic_id": "t2", "partition": 0, "bytes": 5}]}
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
        batch(60, 0, "request_results"),
        batch(0, 0, "results", behind_offsets=None, behind_files=2, behind_bytes=2**20),
    ],
    "pipeline_progress": [
        *(counted(-5, 0, outcome, 5) for outcome in ("in", "out", "left_out", "late", "failed")),
        counted(-5, 0, "quarantined", 2, reason="not_json", target="requests"),
        counted(55, 1, "out", 10, target="requests"),
        counted(30, 7, "out", 1, job="snapshot", query_id="s"),
        *(
            counted(n, 8, "in", 1, job="snapshot", query_id="s", target=target)
            for n in (0, 90)
            for target in ("configs", "moving_replicas", "replica_sizes")
        ),
        *group_snapshot_rows.snapshots(0, 60, 120),
        counted(30, 0, "out", 1, job="request_results", query_id="q-request_results"),
        counted(55, 1, "lost", 3, reason="deleted_before_read"),
        counted(0, 1, "removed", 7, job="upkeep", query_id="upkeep", target="requests"),
    ],
    "quarantine": [
        {"cluster_id": "c1", "event_time": at(5), "target": "requests", "reason": "not_json"}
        | {"detail": HOSTILE, "size_bytes": 9, "source_topic": "logs", "source_offset": 7}
    ],
    "address_clients": [
        {"cluster_id": "c1", "event_time": at(n), "event_date": at(n).date()}
        | {"client_address": "10.0.0.7", "principal": "User:" + HOSTILE}
        | {"client_pattern": HOSTILE, "replica_id": None, "first_seen": at(n)}
        | {"last_seen": at(n + 59), "requests": 300, "producer_ids": 120}
        | {"allocating_connections": 120, "other_connections": 1, "max_weight": 1}
        | {"data_requests": 0, "data_bytes": 0}
        for n in (0, 60)
    ],
    "producer_id_rates": [violation("User:" + HOSTILE, NOON)],
    "producer_id_uses": [
        *(use(n / 2, n, client_id=HOSTILE, principal="User:" + HOSTILE) for n in range(12)),
        use(1, None, client_id=HOSTILE, principal="User:" + HOSTILE, produce_requests=12),
        use(5, 20, transactional_id="t", client_id=None, client_pattern=None),
        use(6, 20, transactional_id="t", allocations=0),
    ],
    "active_producers": [
        active(60, 1),
        active(90, 1),
        active(90, 20),
        active(90, 30),
        active(90, 30, partition=1),
    ],
}
"""Rows of every kind that views tell apart; all numbers add up exactly in any order."""
