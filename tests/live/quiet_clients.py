"""librdkafka clients of tests, which push no metrics."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer

from quotaflow.demo.cluster import LocalCluster

QUIET = {"enable.metrics.push": False}


def producer(cluster: LocalCluster, user: str, **settings: Any) -> Producer:
    """Logged in as a user; settings have _ where Kafka's names have dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({**cluster.librdkafka_properties(user), **QUIET, **named})


def send(
    cluster: LocalCluster,
    topic: str,
    values: Iterable[bytes],
    headers: Sequence[tuple[str, bytes]] = (),
    **settings: Any,
) -> None:
    """Write records as admin, until all are acknowledged."""
    writer = producer(cluster, "admin", **settings)
    for value in values:
        writer.produce(topic, value, headers=list(headers))
    assert writer.flush(60) == 0


@contextmanager
def reader(
    login: Mapping[str, Any], topic: str, group: str, client_id: str = "rdkafka", **settings: Any
) -> Iterator[Consumer]:
    """A consumer that begins with the first record of a topic."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    start = {"group.id": group, "client.id": client_id, "auto.offset.reset": "earliest"}
    consumer = Consumer({**login, **QUIET, **start, **named})
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def metadata_line(number: int) -> bytes:
    """A line of the request log with no more than its number."""
    header = {"requestApiKeyName": "METADATA", "correlationId": number}
    return json.dumps({"isForwarded": False, "requestHeader": header}).encode()
