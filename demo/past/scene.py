"""Gives the demo's cluster a past: topics that end where a made week ends, and the week's lines.

Nothing here is in the request log: lines of CLIENT are not shipped.
"""

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from quotaflow.demo import replica_moves, traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.past import week
from quotaflow.demo.past.clock import MINUTE_MS, Clock
from quotaflow.demo.past.week import Week
from quotaflow.demo.request_lines import now_ms
from quotaflow.pipelines.errors import KafkaError

CLIENT = "quotaflow-past"
_TIMEOUT_S = 60
_ENDED_MIN = 2
"""The past ends so long before the demo: its clients are not those of the live minutes."""


def is_of_past(line: bytes) -> bool:
    """Whether a line of the request log is of who makes the past."""
    return f'"{CLIENT}"'.encode() in line


def begin(cluster: LocalCluster, seed: int) -> Week:
    """Make the topics of the past. Gives its week, which ends a few minutes ago."""
    with cluster.admin(client_id=CLIENT) as admin:
        topics = {name: {"assignments": nodes} for name, nodes in week.PLACED_BEFORE.items()}
        topic_ids = traffic_configs.make_topics(admin, topics)
    end_ms = (now_ms() // MINUTE_MS - _ENDED_MIN) * MINUTE_MS
    return Week(Clock(end_ms), topic_ids, seed)


def fill(cluster: LocalCluster, past: Week, log_topic: str) -> int:
    """Bring the cluster to where the week ends, and write the week's lines. Gives their number."""
    login: dict[str, Any] = {**cluster.librdkafka_properties("alice"), "client.id": CLIENT}
    login["enable.metrics.push"] = False
    _write_records(login)
    with cluster.admin(client_id=CLIENT) as admin:
        traffic_configs.set_quota(week.SEARCH_USER, week.RATE_KEY, week.LAST_QUOTA)(admin)
        replicas = week.ASSIGNMENTS[week.INVOICES][0]
        replica_moves.move(admin, week.INVOICES, replicas, ask=replicas[0])
    for group, positions in past.positions().items():
        _commit(login, group, positions)
    made = past.lines()
    producer = Producer(cluster.librdkafka_properties("shipper") | {"enable.metrics.push": False})
    for ts_ms, broker, line in made:
        producer.produce(log_topic, line, key=str(broker).encode(), timestamp=ts_ms)
        producer.poll(0)
    _flush(producer)
    return len(made)


def _write_records(login: dict[str, Any]) -> None:
    producer = Producer({**login, "linger.ms": 100, "batch.size": 1 << 20})
    for topic, partitions in week.ASSIGNMENTS.items():
        for partition in partitions:
            for _ in range(week.RECORDS):
                producer.produce(topic, b"{}", partition=partition)
            producer.poll(0)
    _flush(producer)


def _commit(login: dict[str, Any], group: str, positions: week.Positions) -> None:
    consumer = Consumer({**login, "group.id": group})
    try:
        consumer.commit(
            offsets=[TopicPartition(*place, offset) for place, offset in positions.items()],
            asynchronous=False,
        )
    finally:
        consumer.close()


def _flush(producer: Producer) -> None:
    if left := producer.flush(_TIMEOUT_S):
        raise KafkaError(f"{left} records of the past not acknowledged")
