"""A new follower does not keep up, and a consumer reads from it all the same (KIP-392).

Its lag must grow from minute to minute. So each act lasts a second, and its lines are shipped as if
it had a minute of its own.
"""

import time
from threading import Event
from typing import Any

from confluent_kafka import Producer

from quotaflow.demo import replica_moves
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import Acts, Line
from quotaflow.demo.traffic_reads import Reader
from quotaflow.pipelines.errors import KafkaError

TOPIC, CLIENT, USER = "stock", "raw-stock-carol", "carol"
LEADER, FOLLOWER = 1, 3
ASSIGNMENTS = {0: [LEADER]}
ACTS = 4
"""Three growths of the lag; the last act is in the minute before the first one began."""

_SMALLEST_RATE = 1
_FIRST, _MORE, _RECORD_BYTES = 600, 20, 10_000
"""What is there first is more than a follower takes at once (replica.fetch.max.bytes)."""

_TIMEOUT_S = 120.0
_LOOK_EVERY_S = 0.1


def play(cluster: LocalCluster, stop: Event) -> Acts:
    """Add a replica under the smallest throttle, then read from it in every act."""
    acts = Acts(first_minutes_ago=ACTS)
    _write(cluster, _FIRST)
    with cluster.admin() as admin, cluster.admin(USER, client_id=CLIENT) as reading:
        reader = Reader(reading, TOPIC)
        # Of all brokers: the tool that ends the other move removes the rates of single ones.
        replica_moves.set_default_rate(admin, "follower", _SMALLEST_RATE)
        replica_moves.set_list(admin, "follower", TOPIC, [FOLLOWER])
        try:
            replica_moves.move(admin, TOPIC, [LEADER, FOLLOWER], ask=LEADER)
            _await_first_records(reader, stop)
            for _ in range(ACTS):
                _write(cluster, _MORE)
                with acts.act():
                    for broker_id in (LEADER, FOLLOWER):
                        reader.fetch(broker_id, 0)
        finally:
            replica_moves.set_list(admin, "follower", TOPIC, None)
            replica_moves.set_default_rate(admin, "follower", None)
    return acts


def is_moved(line: bytes) -> bool:
    """Whether a line of the request log is of the reader: only those of acts are shipped."""
    return f'"{CLIENT}"'.encode() in line


def is_act(request: Line) -> bool:
    """Whether a request is of the reader."""
    return bool(request["requestHeader"]["clientId"] == CLIENT)


def _write(cluster: LocalCluster, records: int) -> None:
    login: dict[str, Any] = {
        **cluster.librdkafka_properties("alice"),
        "client.id": "rdk-stock-alice",
        "enable.metrics.push": False,
        "batch.size": _RECORD_BYTES,
    }
    producer = Producer(login)
    for _ in range(records):
        producer.produce(TOPIC, bytes(_RECORD_BYTES), partition=0)
    if left := producer.flush(_TIMEOUT_S):
        raise KafkaError(f"{TOPIC}: {left} records not acknowledged")


def _await_first_records(reader: Reader, stop: Event) -> None:
    """Until the follower has some, and so is over its rate for the next ten seconds."""
    deadline_s = time.monotonic() + _TIMEOUT_S
    while reader.fetch(FOLLOWER, 0).high_watermark <= 0:
        if stop.wait(_LOOK_EVERY_S) or time.monotonic() > deadline_s:
            raise KafkaError(f"broker {FOLLOWER} did not begin to follow {TOPIC}")
