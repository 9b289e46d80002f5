"""Clients the demo's traffic does not have, at work beside it before its log is shipped."""

import time
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Producer

from quotaflow.demo.cluster import Cluster
from quotaflow.demo.traffic_java import JavaClient
from quotaflow.demo.traffic_stage import Stage

from . import application, raw_client

RESUBSCRIBED, SHARING = "rdk-resubscribed", "java-sharing"
FIRST_INTERVAL_MS, THEN_INTERVAL_MS = 1_000, 400
_PUSHES_S = 3.0
_SHARES_MS = 6_000


def work(cluster: Cluster) -> dict[str, int]:
    """All of them side by side; returns what brokers answered to the raw clients, by client id."""
    with ThreadPoolExecutor(3, "odd") as pool:
        done = [pool.submit(each, cluster) for each in (_be_resubscribed, _share, application.work)]
        answered = raw_client.push_all(cluster)
        for client in done:
            client.result()
    return answered


def _be_resubscribed(cluster: Cluster) -> None:
    """A producer whose subscription is changed under way: it is told so at its next push."""
    producer = Producer({**cluster.librdkafka_properties("alice"), "client.id": RESUBSCRIBED})
    _idle(producer)
    match = f"client_id={RESUBSCRIBED}"
    cluster.subscribe_telemetry("resubscribed", interval_ms=THEN_INTERVAL_MS, match=match)
    _idle(producer)
    producer.flush(5)


def _idle(producer: Producer) -> None:
    until = time.monotonic() + _PUSHES_S
    while time.monotonic() < until:
        producer.poll(0.1)


def _share(cluster: Cluster) -> None:
    """A member of a share group (KIP-932), until nothing came for a while."""
    client = JavaClient(Stage(cluster, 0, 0), "carol", SHARING)
    client.run(
        "consumer.ConsoleShareConsumer",
        *("--topic", "orders", "--group", "sharing", "--timeout-ms", str(_SHARES_MS)),
        config={},
    )
