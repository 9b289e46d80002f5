"""Clients the demo's traffic does not have, at work beside it before its log is shipped."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Producer

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.traffic_java import JavaClient
from quotaflow.demo.traffic_stage import Stage

from . import application

RESUBSCRIBED, SHARING = "rdk-resubscribed", "java-sharing"
FIRST_INTERVAL_MS, THEN_INTERVAL_MS = 1_000, 400
_PUSHES_S = 3.0
_SHARES_MS = 6_000


def work(cluster: LocalCluster) -> None:
    """All of them side by side."""
    others: tuple[Callable[[LocalCluster], None], ...] = (
        _be_resubscribed,
        _share,
        application.work,
    )
    with ThreadPoolExecutor(len(others), "odd") as pool:
        for client in [pool.submit(each, cluster) for each in others]:
            client.result()


def _be_resubscribed(cluster: LocalCluster) -> None:
    """A producer whose subscription changes while it runs: its next push gets the error."""
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


def _share(cluster: LocalCluster) -> None:
    """A member of a share group (KIP-932), until nothing came for a while."""
    client = JavaClient(Stage(cluster, 0, 0), "carol", SHARING)
    client.run(
        "consumer.ConsoleShareConsumer",
        *("--topic", "orders", "--group", "sharing", "--timeout-ms", str(_SHARES_MS)),
        config={},
    )
