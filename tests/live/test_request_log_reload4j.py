"""The request log by the appender for reload4j, on a broker of Kafka 3.9.2."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from quotaflow.demo import java_classes
from quotaflow.demo.brokers import random_uuid
from quotaflow.demo.credentials import write_private
from quotaflow.demo.line_filter import CLIENT_ID
from quotaflow.demo.ports import LOOPBACK, free_ports
from quotaflow.pipelines.spark.jars import jar_set, kafka_jars
from quotaflow.pipelines.spark.java import java

from ..broker_jar import broker_jar
from .request_log_topic import configured, produce_each, rows

pytestmark = pytest.mark.faults

TOPIC = "broker_request_logs"
REQUESTS = 100
LOGGING = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka.request.logger=DEBUG, requests
log4j.additivity.kafka.request.logger=false
log4j.appender.requests=quotaflow.Reload4jAppender
log4j.appender.requests.broker=7
"""


def properties(folder: Path) -> tuple[str, Path]:
    """The address of one combined node without logins, and its file of properties."""
    ports = free_ports(1, random.Random())[0]
    server, controller = f"{LOOPBACK}:{ports.client}", f"{LOOPBACK}:{ports.controller}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "7",
        "controller.quorum.voters": f"7@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{server},CONTROLLER://{controller}",
        "log.dirs": str(folder / "data"),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    return server, write_private(folder / "server.properties", settings)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of the broker, which is there until the test ends."""
    address, conf = properties(tmp_path)
    # Without logins nobody's principal differs: the client id alone decides.
    own = {"bootstrap.servers": address, "own.principal": "User:ANONYMOUS"}
    plain = {"producer.security.protocol": "PLAINTEXT"}
    request_log = configured(tmp_path, own | plain)
    logging = tmp_path / "log4j.properties"
    logging.write_text(f"{LOGGING}log4j.appender.requests.config={request_log}\n")
    jars = jar_set("kafka-3.9.2", Path(__file__).parent / "kafka_sets")
    files = [java_classes.compiled(kafka_jars()), broker_jar(), *jars]
    command = [
        *(str(java()), "-Xmx256m", "-XX:+UseSerialGC", f"-Dlog4j.configuration=file:{logging}"),
        *("-cp", os.pathsep.join(map(str, files)), "quotaflow.Tethered"),
    ]
    identity = ["format", "-t", random_uuid(), "-c", str(conf)]
    storage = [*command, "kafka.tools.StorageTool", *identity]
    with subprocess.Popen(storage, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as tool:
        assert tool.wait(120) == 0
    with (
        (tmp_path / "console.log").open("wb") as console,
        subprocess.Popen(
            [*command, "kafka.Kafka", str(conf)],
            stdin=subprocess.PIPE,
            stdout=console,
            stderr=subprocess.STDOUT,
        ) as broker,
    ):
        await_topic(address)
        yield address
        broker.kill()


def await_topic(address: str) -> None:
    """Make the topics, once the broker answers."""
    admin = AdminClient({"bootstrap.servers": address, "enable.metrics.push": False})
    topics = [NewTopic(name, 1, 1) for name in (TOPIC, "orders")]
    for made in admin.create_topics(topics, operation_timeout=200, request_timeout=240).values():
        made.result(250)
    time.sleep(1)


def test_lines_of_kafka_3_9_go_to_the_topic_with_their_time(server: str) -> None:
    login = {"bootstrap.servers": server}
    start_s = time.time()
    produce_each(login, "orders", REQUESTS)
    lines = rows(login, TOPIC)
    # Lines of the time before the topic was there are lost, and counted.
    read = [line for line in lines if line["reason"] != "lines_lost"]
    assert {(line["reason"], line["form"], line["broker_id"]) for line in read} == {
        (None, "envelope", 7)
    }
    produced = [line for line in lines if line["api"] == "PRODUCE"]
    assert len(produced) == REQUESTS
    times = [line["stated_time"].timestamp() for line in produced]
    assert start_s - 1 < min(times) <= max(times) < time.time()
    assert CLIENT_ID not in {line["client_id"] for line in lines}
