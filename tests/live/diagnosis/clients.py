"""What clients of the scenes do until their act ends: each works under its own client id."""

import contextlib
import struct
import time
from collections.abc import Callable
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError as ClientError

from quotaflow.demo.raw_connection import RawConnection, string
from quotaflow.demo.traffic_reads import PAST_END, Reader

from .slow_link import CHUNK_BYTES, link
from .stage import Stage

Work = Callable[[Stage, str, str], None]
"""With the user and the client id, which is the topic's name too."""

CALM_BYTES = 200
READ_BYTES = 600_000
_FETCH, _FETCH_VERSION = 1, 4
_READ_EVERY_S = 0.2


def writes(per_s: float, size: int = CALM_BYTES, topic: str = "", **config: Any) -> Work:
    """One record each time, at an even pace."""

    def work(stage: Stage, user: str, client_id: str) -> None:
        producer = stage.producer(user, client_id, **{"linger_ms": 0, **config})
        record = Random(client_id).randbytes(size)
        for _ in stage.every(1 / per_s):
            with contextlib.suppress(BufferError, KafkaException):
                producer.produce(topic or client_id, record, partition=0)
            producer.poll(0)
        stage.flush(producer)

    return work


def floods(connections: int, size: int) -> Work:
    """As fast as brokers take it, by producers side by side; half of each record is redundant."""

    def work(stage: Stage, user: str, client_id: str) -> None:
        config = {"acks": 1, "linger.ms": 0, "queue.buffering.max.messages": 2}
        producers = [Producer(stage.login(user, client_id) | config) for _ in range(connections)]
        record = Random(client_id).randbytes(size // 2).hex().encode()
        while not stage.ended.is_set():
            for producer in producers:
                with contextlib.suppress(BufferError):
                    producer.produce(client_id, record, partition=0)
                producer.poll(0.005)
        for producer in producers:
            stage.flush(producer)

    return work


def bursts(records: int, **config: Any) -> Work:
    """So many small records at once, every second."""

    def work(stage: Stage, user: str, client_id: str) -> None:
        producer = stage.producer(user, client_id, **config)
        for _ in stage.every(1):
            for _ in range(records):
                with contextlib.suppress(BufferError):
                    producer.produce(client_id, b"tiny", partition=0)
            producer.poll(0)
        stage.flush(producer)

    return work


def reads(stage: Stage, user: str, client_id: str) -> None:
    """From the first record on, with small answers."""
    most = ("fetch.max.bytes", "message.max.bytes", "fetch.message.max.bytes")
    small = dict.fromkeys(most, 20_000) | {"group.id": client_id, "enable.auto.commit": False}
    consumer = Consumer(stage.login(user, client_id) | small)
    consumer.assign([TopicPartition(client_id, 0, 0)])
    while not stage.ended.is_set():
        consumer.consume(100, 0.1)
    consumer.close()


class _Reader(RawConnection):
    """Takes answers from its connection no faster than this."""

    bytes_per_s = 0.0

    def fetch(self, topic: str, size: int) -> None:
        """From the first record on; the answer is thrown away."""
        partition = struct.pack(">iqi", 0, 0, size)
        topics = struct.pack(">i", 1) + string(topic) + struct.pack(">i", 1) + partition
        body = struct.pack(">iiiib", -1, 0, 1, size, 0) + topics
        self.call(_FETCH, _FETCH_VERSION, body)

    def _read(self, size: int) -> bytes:
        data = b""
        while self.bytes_per_s and size - len(data) > CHUNK_BYTES:
            data += super()._read(CHUNK_BYTES)
            time.sleep(CHUNK_BYTES / self.bytes_per_s)
        return data + super()._read(size - len(data))


def fetches(
    size: int, *, bytes_per_s: float = 0.0, link_delay_s: float = 0.0, link_bytes_per_s: float = 0.0
) -> Work:
    """Answers of this size, which the client, or its link, takes slowly."""

    def work(stage: Stage, user: str, client_id: str) -> None:
        brokers = stage.cluster.bootstrap_servers.split(",")
        home = brokers[list(stage.cluster.racks).index(stage.roles.home)]
        slow = link(stage.cluster, home, delay_s=link_delay_s, bytes_per_s=link_bytes_per_s)
        with slow as way, _Reader(way, user, client_id) as reader:
            reader.bytes_per_s = bytes_per_s
            for _ in stage.every(_READ_EVERY_S):
                reader.fetch(client_id, size)

    return work


def describes_missing(stage: Stage, user: str, client_id: str) -> None:
    """Metadata of a topic that is not there."""
    admin = AdminClient(stage.login(user, client_id))
    for _ in stage.every(0.3):
        with contextlib.suppress(KafkaException):
            admin.list_topics(f"{client_id}-missing", timeout=2)


def fetches_missing(stage: Stage, user: str, client_id: str) -> None:
    """Records of a topic that is not there."""
    with stage.cluster.admin(user, client_id=client_id) as admin:
        reader = Reader(admin, f"{client_id}-missing")
        for _ in stage.every(0.3):
            reader.fetch(stage.roles.home, 0)


def reads_past_the_end(stage: Stage, user: str, client_id: str) -> None:
    """Offsets that no record has."""
    with stage.cluster.admin(user, client_id=client_id) as admin:
        reader = Reader(admin, client_id)
        for _ in stage.every(0.3):
            reader.fetch(stage.roles.home, PAST_END)


def creates_topics(stage: Stage, user: str, client_id: str) -> None:
    """One after the other, faster than its quota of mutations."""
    with stage.cluster.admin(user, client_id=client_id) as admin:
        for n in stage.every(0.3):
            topic = {f"{client_id}-{n}": {"num_partitions": 5, "replication_factor": 1}}
            with contextlib.suppress(ClientError):
                admin.create_topics(topic, timeout_ms=1_000)


def fences_itself(stage: Stage, user: str, client_id: str) -> None:
    """Each new instance takes over the transactional id of one that goes on to write."""
    config = stage.login(user, client_id) | {"transactional.id": client_id, "linger.ms": 0}
    while not stage.ended.is_set():
        old, new = Producer(config), Producer(config)
        old.init_transactions(20)
        old.begin_transaction()
        old.produce(client_id, b"first", partition=0)
        old.flush(5)
        new.init_transactions(20)
        with contextlib.suppress(KafkaException):
            old.produce(client_id, b"late", partition=0)
            old.flush(2)
