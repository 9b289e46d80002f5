"""Throttled moves of a real cluster: what slows them, by whom, and what brokers measure."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import logged, now_ms
from quotaflow.demo.traffic_stage import Stage
from quotaflow.pipelines.results.declared import result_of
from quotaflow.udfs.rules.quota_rate import SimpleRate

from ..rule_rows import Rows, compute
from . import quiet_clients
from .drive import Run, parsed
from .jmx import jmx
from .tables_read import query

TOOL = "reassign-partitions-tool"
RATE, SIZE, RECORD_BYTES = 4_000_000, 100_000_000, 100_000
WINDOWS_MS, MOMENT_MS = 11_000, 100


@pytest.mark.shows("says if a replication throttle is effective, and why not")
def test_the_demos_move_is_listed_rated_and_effective(filled: Path, run: Run) -> None:
    move = run.report.move
    rows = query(
        filled,
        "SELECT * FROM replication_throttles WHERE topic = 'bulk' AND peer_broker_id IS NOT NULL "
        "AND is_effective ORDER BY event_time",
    )
    sides = {row["side"]: row for row in rows}
    ends = {side: (row["broker_id"], row["peer_broker_id"]) for side, row in sides.items()}
    there, back = (move.from_broker, move.to_broker), (move.to_broker, move.from_broker)
    assert ends == {"leader": there, "follower": back}
    for row in sides.values():
        assert (row["listed"], row["rate"]) == ("entry", float(move.throttle_bytes_per_s))
        assert row["rate_source"] == "dynamic_broker"
        assert (row["in_isr"], row["in_isr_source"]) == (False, "fetch_offset")
        assert (row["list_set_by"], row["list_set_by_client_id"]) == ("User:admin", TOOL)
        assert (row["rate_set_by"], row["rate_set_by_client_id"]) == ("User:admin", TOOL)
        assert row["is_moving"]
    assert not query(filled, "SELECT * FROM throttle_checks WHERE topic = 'bulk'")


def test_changes_are_told_once_also_those_that_were_refused(filled: Path, run: Run) -> None:
    rows = query(filled, "SELECT * FROM throttle_changes")
    refused = {(row["entity_name"], row["config_value"], row["error_code"]) for row in rows} & {
        ("2", "abc", 42),
        ("payments", "0-1", 40),
    }
    assert len(refused) == 2
    of_bulk = [row for row in rows if row["entity_name"] == "bulk" and row["operation"] == "SET"]
    move = run.report.move
    assert {(row["config_key"].partition(".")[0], row["config_value"]) for row in of_bulk} == {
        ("leader", f"0:{move.from_broker}"),
        ("follower", f"0:{move.to_broker}"),
    }
    assert len(of_bulk) == 2


class Poll(NamedTuple):
    """What a bean said, in bytes per second, at some moment between two."""

    start_ms: int
    end_ms: int
    rate: float


def moved_under_throttle(cluster: LocalCluster, topic: str) -> tuple[int, list[Poll]]:
    """The broker that was read from, and what it measured meanwhile."""
    leader = 1
    producer = quiet_clients.producer(cluster, "alice", linger_ms=50)
    record = Random(73).randbytes(RECORD_BYTES)
    for _ in range(SIZE // RECORD_BYTES):
        producer.produce(topic, record)
    assert producer.flush(30) == 0
    measured = []
    (cluster.folder / "clients").mkdir(exist_ok=True)
    with ThreadPoolExecutor(1) as pool, cluster.admin() as admin:
        stage = Stage(cluster, 0, 60.0)
        moved = pool.submit(
            *(traffic_configs.move, stage, topic),
            size_bytes=SIZE,
            throttle_bytes_per_s=RATE,
        )
        # A query for a broker's rate begins a sample: too early, it counts as time without bytes.
        while len(admin.describe_topics([topic])[0]["partitions"][0]["replica_nodes"]) == 1:
            assert not moved.done(), moved.exception()
            time.sleep(0.1)
        while not moved.done():
            start_ms = now_ms()
            beans = jmx(cluster, leader, "kafka.server:type=LeaderReplication")
            (rate,) = (float(v) for name, v in beans.items() if name.endswith("byte-rate"))
            measured.append(Poll(start_ms, now_ms(), rate))
        assert moved.result().is_finished
    return leader, measured


def since(cluster: LocalCluster, time_ms: int) -> list[dict[str, Any]]:
    """Lines of the brokers' logs since a time, of fetches and of what alters configs."""
    apis = {"FETCH", "INCREMENTAL_ALTER_CONFIGS", "ALTER_CONFIGS", "CREATE_TOPICS", "DELETE_TOPICS"}
    return [
        line
        for line in logged(cluster)
        if line["ts"] >= time_ms and line["r"]["requestHeader"]["requestApiKeyName"] in apis
    ]


def rates_of(cluster: LocalCluster, lines: Rows, topics: Rows) -> Rows:
    """Rows of replication_rates, from the log and the names of topics alone."""
    named = [row | {"cluster_id": cluster.cluster_id} for row in topics]
    alterations = compute(result_of("config_alterations"), requests=lines)
    tables = {"requests": lines, "topics": named, "config_alterations": alterations}
    return compute(result_of("replication_rates"), **tables)


@pytest.mark.faults
@pytest.mark.shows("compares its rules with Kafka's own classes")
def test_rates_of_the_log_are_those_the_broker_measures(cluster: LocalCluster) -> None:
    topic = f"moved-{uuid4().hex[:8]}"
    with cluster.admin() as admin:
        ids = traffic_configs.make_topics(admin, {topic: {"assignments": {0: [1]}}})
    began = datetime.now(UTC)
    leader, measured = moved_under_throttle(cluster, topic)
    topics = [{"event_time": began, "topic_id": ids[topic], "topic": topic, "is_removed": False}]
    written = since(cluster, int(began.timestamp() * 1_000))
    lines = parsed(cluster, written).to_pylist()
    rows = rates_of(cluster, lines, topics)
    by_log = {
        int(row["event_time"].timestamp()): row
        for row in rows
        if (row["broker_id"], row["side"]) == (leader, "leader")
    }
    sent = replicated(cluster, ids[topic], int(began.timestamp() * 1_000))
    assert sum(row["bytes"] for row in by_log.values()) == sum(size for _, size in sent)
    # A table has the time at which bytes came, a bean that of the query: the rule is applied to
    # both.
    at_last = {ts // 1_000: ts for ts, _ in sent}
    logged = [by_log[second]["throttled_rate"] for second in at_last]
    assert mean(logged) == pytest.approx(mean(rates_at(sent, [*at_last.values()])), rel=0.05)
    # A broker says less than it lets through until all of its windows were lived through.
    full = [
        poll
        for poll in measured
        if sent[0][0] + WINDOWS_MS <= poll.start_ms and poll.end_ms <= sent[-1][0]
    ]
    assert len(full) >= 2, (measured, sent[0], sent[-1])
    # Starting Kafka's tool takes seconds: at which moment it queries is unknown.
    by_rule = [
        mean(rates_at(sent, [*range(poll.start_ms, poll.end_ms, MOMENT_MS)])) for poll in full
    ]
    by_broker = [poll.rate for poll in full]
    assert mean(by_rule) == pytest.approx(mean(by_broker), rel=0.05), (by_rule, by_broker)
    assert {row["quota"] for row in by_log.values()} == {float(RATE)}


def replicated(cluster: LocalCluster, topic_id: str, since_ms: int) -> list[tuple[int, int]]:
    """When how many bytes of a topic went to followers, by the brokers' logs."""
    return sorted(
        (line["ts"], partition["recordsSizeInBytes"])
        for line in logged(cluster)
        if line["ts"] >= since_ms
        and line["r"]["requestHeader"]["requestApiKeyName"] == "FETCH"
        and "replicaState" in line["r"]["request"]
        for topic in line["r"]["response"]["responses"]
        if topic["topicId"] == topic_id
        for partition in topic["partitions"]
        if partition["recordsSizeInBytes"] > 0
    )


def rates_at(sent: list[tuple[int, int]], times_ms: list[int]) -> list[float]:
    """What Kafka's SimpleRate is at these times."""
    rate, measured, waiting = SimpleRate(), [], list(sent)
    for time_ms in sorted(times_ms):
        while waiting and waiting[0][0] <= time_ms:
            ts, size = waiting.pop(0)
            rate.record(size, ts)
        measured.append(rate.measure(time_ms))
    return measured
