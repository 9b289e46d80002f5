"""A broker whose request log goes to the topic by the jar's appender, and what then is there."""

import time
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from quotaflow.demo.credentials import write_private

from ..record_batches import parsed
from . import quiet_clients


def configured(folder: Path, settings: Mapping[str, str], jaas: str | None = None) -> Path:
    """The file for operators with its values edited; a login's secret is in a file beside it."""
    text = (files("quotaflow.broker") / "request-log.properties").read_text(encoding="utf-8")
    given = dict(line.split("=", 1) for line in text.splitlines() if line and line[0] != "#")
    given = {key: value for key, value in given.items() if "ssl." not in key}
    assert given.keys() >= {"bootstrap.servers", "own.principal", "config.providers"}
    if jaas is None:
        given = {key: value for key, value in given.items() if "sasl" not in key}
    else:
        secret = write_private(folder / "shipper-login.properties", {"jaas": jaas})
        reference = given["producer.sasl.jaas.config"]
        assert reference == "${file:/etc/kafka/quotaflow/shipper.properties:jaas}"
        given["producer.sasl.jaas.config"] = f"${{file:{secret}:jaas}}"
    path = folder / "request-log.properties"
    path.write_text("".join(f"{k}={v}\n" for k, v in {**given, **settings}.items()))
    return path


def produce_each(login: Mapping[str, Any], topic: str, count: int, **config: Any) -> None:
    """So many PRODUCE requests of one record: what fails is not sent again."""
    fixed = {"linger.ms": 0, "retries": 0, "enable.metrics.push": False}
    producer = Producer({**login, **fixed, **config})
    for n in range(count):
        producer.produce(topic, str(n))
        assert producer.flush(30) == 0


def rows(login: Mapping[str, Any], topic: str, still_s: float = 2) -> list[dict[str, Any]]:
    """The topic's records as lines, once nothing but lines of an idle broker comes any more."""
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    with quiet_clients.reader(login, topic, "reads-lines", "reads-lines") as consumer:
        while time.monotonic() < deadline:
            messages = consumer.consume(10_000, still_s)
            fresh = [message.value() or b"" for message in messages if not message.error()]
            values += fresh
            if values and not any(b'"PRODUCE"' in value for value in fresh):
                break
    return parsed(values)
