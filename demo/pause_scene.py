"""A broker pauses for seconds, as in a long garbage collection: ISRs shrink."""

import os
import signal
import time
from threading import Event
from typing import Any

from confluent_kafka import Producer

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.errors import KafkaError

TOPIC = "clicks"
"""Each of its partitions has two replicas, so one in sync is min.insync.replicas."""

LAG_TIME_MS = 4_000
"""replica.lag.time.max.ms: a follower that is this long behind is out of sync (default 30 s)."""

_LONGEST_S = 8.5
"""After 9 s (broker.session.timeout.ms) the controller fences the broker, and nothing is logged."""

_LOOK_EVERY_S = 0.2


def play(cluster: LocalCluster, stop: Event) -> None:
    """Stop a broker until others remove it from their ISRs, then let it go on."""
    with cluster.admin() as admin:
        quorum = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
    paused = max(id_ for id_ in cluster.racks if id_ != quorum["leader_id"])
    servers = dict(zip(cluster.racks, cluster.bootstrap_servers.split(","), strict=True))
    del servers[paused]
    running = min(servers)
    partitions = cluster.partitions_at(running, TOPIC).items()
    followed = [n for n, p in partitions if paused in p.replicas and p.leader != paused]
    os.kill(cluster.pids[paused], signal.SIGSTOP)
    try:
        _write(cluster, ",".join(servers.values()), followed)
        deadline_s = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline_s and not stop.wait(_LOOK_EVERY_S):
            now = cluster.partitions_at(running, TOPIC)
            if not any(paused in now[n].isrs for n in followed):
                return
    finally:
        os.kill(cluster.pids[paused], signal.SIGCONT)


def _write(cluster: LocalCluster, servers: str, partitions: list[int]) -> None:
    """A record each: who has all that the leader has is in sync, however long ago it running."""
    login: dict[str, Any] = {
        **cluster.librdkafka_properties("alice"),
        "bootstrap.servers": servers,
        "client.id": "rdk-clicks-alice",
        "enable.metrics.push": False,
        "acks": 1,
    }
    producer = Producer(login)
    for partition in partitions:
        producer.produce(TOPIC, b"{}", partition=partition)
    if left := producer.flush(_LONGEST_S):
        raise KafkaError(f"{TOPIC}: {left} records not acknowledged")
