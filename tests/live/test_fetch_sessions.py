"""Sessions rebuilt from real brokers' logs hold what their clients read (KIP-227)."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import logged
from quotaflow.pipelines.facts import fetches
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.spark import frames
from quotaflow.schemas.tables.declared import FETCH_SESSIONS
from quotaflow.udfs.fetch_sessions import Limits

from .drive import Run, parsed
from .tables_read import query

TOPIC, CLIENT, PARTITIONS = "followed", "followed-carol", 9
ORDERS = 3
LIMITS = Limits(idle_us=60_000_000, now_us=time.time_ns() // 1_000)
RECORDS_EACH, RECORD_BYTES = 20, 100
Row = dict[str, Any]


@dataclass(frozen=True)
class Phase:
    """What a consumer had been assigned and where it stood when its last fetch was answered."""

    ended_ms: int
    positions: dict[int, int]


@pytest.mark.faults
def test_a_consumer_s_sessions_hold_its_assignment_in_the_broker_s_order(
    cluster: LocalCluster, spark: SparkSession
) -> None:
    cluster.create_topics([TOPIC], partitions=PARTITIONS)
    phases = list(work(cluster))
    lines = [line for line in logged(cluster) if is_ours(line["r"])]
    rows = frames.from_arrow(spark, parsed(cluster, lines)).persist()
    fetched: list[Row] = []
    kept: list[Row] = []
    since_ms = 0
    for phase in phases:
        time_range = f"unix_millis(event_time) BETWEEN {since_ms} AND {phase.ended_ms}"
        followed = fetches.follow(
            fetches.lines(rows.where(time_range)), sessions(spark, kept), LIMITS
        ).collect()
        followed_rows = [row.asDict(recursive=True) for row in followed]
        kept = [row for row in followed_rows if row["kind"] == "session"]
        fetched += [row for row in followed_rows if row["kind"] == "fetch"]
        cached = {
            one["partition"]: one["fetch_offset"]
            for row in kept
            for one in row["cached_partitions"]
        }
        assert cached == phase.positions
        since_ms = phase.ended_ms + 1
    rows.unpersist()

    several = 0
    for row in fetched:
        assert row["session_state"] in {"full", "known"}
        places = {one["partition"]: one["request_index"] for one in row["partitions"]}
        in_response = [places[number] for number in answered_in(lines[row["source_offset"]]["r"])]
        assert in_response == sorted(in_response)
        several += row["session_state"] == "known" and len(in_response) > 1
    assert several > 10


@pytest.mark.shows("rebuilds fetch sessions")
def test_a_java_consumer_s_offsets_are_known_at_every_answer(filled: Path, run: Run) -> None:
    consumer = run.client("java-orders-bob")
    answers = query(
        filled,
        "SELECT session_state, session_partitions, p FROM (SELECT *, unnest(partitions) AS p "
        f"FROM fetches WHERE client_id = '{consumer.client_id}') ORDER BY event_time",
    )
    assert {row["session_state"] for row in answers} == {"full", "known"}
    assert max(row["session_partitions"] for row in answers) == ORDERS
    read: dict[int, list[Row]] = {}
    for row in answers:
        assert row["p"]["request_index"] < row["session_partitions"]
        assert row["p"]["topic_id"] == run.report.topic_ids["orders"]
        read.setdefault(row["p"]["partition"], []).append(row["p"])
    for each in read.values():
        offsets = [one["fetch_offset"] for one in each]
        assert offsets == sorted(offsets)
        assert offsets[0] == 0
    assert len(read) == ORDERS


def test_followers_sessions_hold_what_they_replicate(filled: Path, run: Run) -> None:
    topics = [run.report.topic_ids[name] for name in ("orders", "payments", "clicks")]
    followers = query(
        filled,
        "SELECT h['topic_id'] AS topic_id, h['partition'] AS n, broker_id, replica_id FROM ("
        "SELECT *, unnest(cached_partitions) AS h FROM fetch_sessions "
        "WHERE replica_id IS NOT NULL) "
        "ORDER BY event_time",
    )
    replicas = query(filled, "SELECT topic_id, partition AS n, broker_id FROM current_replicas")
    for topic_id, number in {(r["topic_id"], r["n"]) for r in replicas if r["topic_id"] in topics}:
        ours = [r for r in followers if (r["topic_id"], r["n"]) == (topic_id, number)]
        leader = ours[-1]["broker_id"]
        replica_ids = {r["replica_id"] for r in ours if r["broker_id"] == leader}
        of_partition = [r for r in replicas if (r["topic_id"], r["n"]) == (topic_id, number)]
        assert {leader, *replica_ids} == {r["broker_id"] for r in of_partition}


def work(cluster: LocalCluster) -> Iterator[Phase]:
    """A consumer of all partitions, then of one at each broker, then of all again."""
    options = admin.options(cluster.client_properties("carol"))
    options |= {"client_id": CLIENT, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 200}
    options |= {"fetch_min_bytes": 3 * RECORD_BYTES}  # so that answers are of several partitions
    producer = Producer(cluster.librdkafka_properties("alice") | {"client.id": "followed-alice"})
    with (
        cluster.admin() as admin_client,
        closing(KafkaConsumer(group_id=None, **options)) as consumer,
    ):
        leaders = leaders_of(admin_client.describe_topics([TOPIC])[0])
        one_each = {leader: number for number, leader in leaders.items()}
        assert len(one_each) > 1
        for numbers in (sorted(leaders), sorted(one_each.values()), sorted(leaders)):
            yield read(producer, consumer, numbers)


def leaders_of(topic: Any) -> dict[int, int]:
    return {p["partition_index"]: p["leader_id"] for p in topic["partitions"]}


def read(producer: Producer, consumer: KafkaConsumer, numbers: list[int]) -> Phase:
    """Read what comes meanwhile, until nothing more does."""
    partitions = [TopicPartition(TOPIC, number) for number in numbers]
    consumer.assign(partitions)
    for _ in range(RECORDS_EACH):
        for number in range(PARTITIONS):
            producer.produce(TOPIC, bytes(RECORD_BYTES), partition=number)
        producer.poll(0)
        consumer.poll(20)
    producer.flush(10)
    until_s = time.monotonic() + 1
    while time.monotonic() < until_s:
        if consumer.poll(100):
            until_s = time.monotonic() + 1
    return Phase(now_ms(), {p.partition: consumer.position(p) for p in partitions})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def is_ours(line: Row) -> bool:
    header = line["requestHeader"]
    return header["requestApiKeyName"] == "FETCH" and header["clientId"] == CLIENT


def sessions(spark: SparkSession, rows: list[Row]) -> DataFrame:
    """Rows of fetch_sessions as the next batch reads them."""
    table = FETCH_SESSIONS
    values = [tuple(row[name] for name in table.column_names) for row in rows]
    return spark.createDataFrame(values, table.sql_schema)


def answered_in(line: Row) -> list[int]:
    topics = line["response"]["responses"]
    return [one["partitionIndex"] for topic in topics for one in topic["partitions"]]
