"""Lags of groups by a snapshot of the real cluster, against what Kafka's own tools print."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer
from kafka import TopicPartition

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.snapshots import take

from . import quiet_clients
from .drive import Run
from .tables_read import query

_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_NO_OFFSET = "-"


def printed(cluster: LocalCluster) -> set[tuple[Any, ...]]:
    """Group, topic, partition, offset, end and lag, as the tool prints all groups."""
    login = ("--command-config", str(cluster.properties_file("admin")))
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    text = cluster.run_tool(_TOOL, *server, *login, "--describe", "--all-groups")
    lines = [line.split() for line in text.splitlines()]
    rows = (words[:6] for words in lines if len(words) == 9 and words[0] != "GROUP")
    return {
        (group, topic, *map(int, numbers))
        for group, topic, *numbers in rows
        if _NO_OFFSET not in numbers
    }


def test_lag_is_to_the_record_what_kafkas_tool_prints(
    cluster: LocalCluster, run: Run, conf: Conf
) -> None:
    assert run.report
    take.take(conf, datetime.now(UTC), lambda _: None)
    rows = query(
        conf,
        'SELECT group_id, topic, "partition", "position", end_offset, lag FROM group_lag '
        'WHERE "position" IS NOT NULL',
    )
    expected = printed(cluster)
    assert {group for group, *_ in expected} >= {"bob-orders", "carol-orders"}
    assert {tuple(row.values()) for row in rows} == expected


@contextmanager
def writer(cluster: LocalCluster) -> Iterator[Producer]:
    """A transactional producer; a transaction that the test leaves open ends with the block."""
    producer = quiet_clients.producer(cluster, "bob", transactional_id=f"left-{uuid4().hex[:8]}")
    producer.init_transactions(30)
    try:
        yield producer
    finally:
        producer.abort_transaction(30)


def write(producer: Producer, topic: str, records: int) -> None:
    for _ in range(records):
        producer.produce(topic, b"x")
    assert producer.flush(30) == 0


def read(cluster: LocalCluster, topic: str, records: int) -> None:
    """As a group with the name of the topic, and commit the offset after the last record."""
    login = cluster.librdkafka_properties("bob")
    settings = {"isolation_level": "read_committed", "enable_auto_commit": False}
    with quiet_clients.reader(login, topic, topic, **settings) as consumer:
        last = consumer.consume(records, 30)[-1]
        consumer.commit(message=last, asynchronous=False)


def test_lag_has_only_what_the_group_can_still_read(cluster: LocalCluster, conf: Conf) -> None:
    name = uuid4().hex[:8]
    blocked, marked, deleted = (f"{kind}-{name}" for kind in ("blocked", "marked", "deleted"))
    cluster.create_topics([blocked, marked, deleted], partitions=1, replication_factor=1)
    with writer(cluster) as producer:
        producer.begin_transaction()
        for topic in (blocked, marked, deleted):
            write(producer, topic, 5)
        producer.commit_transaction(30)
        producer.begin_transaction()
        write(producer, blocked, 3)
        for topic, records in ((blocked, 5), (marked, 5), (deleted, 2)):
            read(cluster, topic, records)
        with cluster.admin() as admin:
            admin.delete_records({TopicPartition(deleted, 0): 6})
        take.take(conf, datetime.now(UTC), lambda _: None)
        of_tool = {topic: lag for _, topic, _, _, _, lag in printed(cluster)}
    rows = query(
        conf,
        "SELECT topic, lag, blocked_records, deleted_records, trend FROM group_lag "
        f"WHERE topic LIKE '%-{name}'",
    )
    assert {tuple(row.values()) for row in rows} == {
        (blocked, 0, 3, 0, "blocked"),
        (marked, 0, 0, 0, "caught_up"),
        (deleted, 0, 0, 4, "caught_up"),
    }
    assert (of_tool[blocked], of_tool[marked], of_tool[deleted]) == (4, 1, 4)
