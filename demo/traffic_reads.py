"""A consumer that reads as none should (KIP-392): out of range, past the end, in circles."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message, Producer
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest

from quotaflow.demo.traffic_report import Reads
from quotaflow.demo.traffic_stage import Stage
from quotaflow.pipelines.errors import KafkaError

TOPIC, CLIENT, USER = "audit", "raw-audit-carol", "carol"
RECORDS, FIRST = 30, 10
PAST_END = 1_000_000
AGAIN = 6
OUT_OF_RANGE = 1
_ROUNDS = 100
_PARTITION = TopicPartition(TOPIC, 0)
_ALL_NAMES = 12
"""The last version of FETCH with names of topics instead of ids."""

_QUIET_S = 50
_AGAIN_S = 0.01


@dataclass(frozen=True, slots=True)
class Reader:
    """Fetches partition 0 of a topic by hand, from any broker and offset."""

    admin: KafkaAdminClient
    topic: str

    def send(self, request: Any, broker_id: int) -> Any:
        """The answer of one broker."""
        return self.admin._manager.run(self.admin._manager.send, request, broker_id)

    def fetch(self, broker_id: int, offset: int, rack: str = "") -> Any:
        """The partition as the broker answered, without a session and without waiting."""
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=offset, partition_max_bytes=100
        )
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1_000,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=self.topic, partitions=[partition])],
            rack_id=rack,
            max_version=_ALL_NAMES,
        )
        return self.send(request, broker_id).responses[0].partitions[0]

    def epoch_end(self, broker_id: int, epoch: int) -> Any:
        """What the broker answers to an epoch check (KIP-320)."""
        topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        partition = topic_class.OffsetForLeaderPartition(
            partition=0, current_leader_epoch=-1, leader_epoch=epoch
        )
        topic = topic_class(topic=self.topic, partitions=[partition])
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
        return self.send(request, broker_id).topics[0].partitions[0]


def work(stage: Stage) -> Reads:
    """All that can go wrong, within one minute by the brokers' clocks."""
    login = stage.cluster.librdkafka_properties("alice") | {"linger.ms": 0}
    login |= {"client.id": "rdk-audit-alice", "enable.metrics.push": False}
    # A leader deletes no record that it does not know its followers to have.
    patient, producer = Producer(login), Producer(login | {"acks": 1})
    for _ in range(RECORDS):
        patient.produce(TOPIC, bytes(10), partition=0)
    _flush(patient)
    with stage.cluster.admin() as admin:
        (partition,) = admin.describe_topics([TOPIC])[0]["partitions"]
        leader = partition["leader_id"]
        follower = next(n for n in partition["replica_nodes"] if n != leader)
        admin.delete_records({_PARTITION: FIRST})
    if time.time() % 60 > _QUIET_S:
        stage.stop.wait(60 - time.time() % 60)
    with stage.cluster.admin(USER, client_id=CLIENT) as admin:
        reading = _Reading(Reader(admin, TOPIC), leader, follower)
        reading.out_of_range()
        reading.too_early(producer)
        reading.in_circles(stage.cluster.racks[follower])
        reading.look_up()
    return Reads(leader, follower, dict(reading.answers))


class _Reading:
    """Reads of one reader, and the answers by what was wrong."""

    def __init__(self, reader: Reader, leader: int, follower: int) -> None:
        self._reader = reader
        self._leader = leader
        self._follower = follower
        self.answers: Counter[str] = Counter()

    def out_of_range(self) -> None:
        """Before the first record and behind the last one."""
        for broker_id in (self._leader, self._follower):
            while self._reader.fetch(broker_id, FIRST).high_watermark < RECORDS:
                time.sleep(_AGAIN_S)
            for offset in (FIRST - 1, PAST_END):
                self._must_be_out_of_range(self._reader.fetch(broker_id, offset))

    def too_early(self, producer: Producer) -> None:
        """From where records end that only the leader has yet."""
        ends: list[int] = []

        def delivered(_: object, message: Message) -> None:
            ends.append(int(message.offset() or 0) + 1)

        for _ in range(_ROUNDS):
            before = len(ends)
            for _ in range(20):
                producer.produce(TOPIC, bytes(10), partition=0, on_delivery=delivered)
            while len(ends) == before:
                producer.poll(0.001)
            for broker_id in (self._follower, self._leader):
                self._count_early(self._reader.fetch(broker_id, ends[-1]), ends[-1])
            if min(self.answers["unavailable"], self.answers["uncommitted"]) > 0:
                break
        _flush(producer)
        while self._reader.fetch(self._leader, ends[-1]).high_watermark < ends[-1]:
            self.answers["uncommitted"] += 1
            time.sleep(_AGAIN_S)

    def _count_early(self, read: Any, offset: int) -> None:
        if read.error_code == OUT_OF_RANGE:
            self.answers["out_of_range"] += 1
            self.answers["unavailable"] += 1
        elif read.high_watermark < offset:
            self.answers["uncommitted"] += 1

    def in_circles(self, rack: str) -> None:
        """To the follower that the leader names, and back."""
        for _ in range(AGAIN):
            named = self._reader.fetch(self._leader, FIRST, rack).preferred_read_replica
            if named != self._follower:
                raise KafkaError(f"{CLIENT}: the leader named {named}, not {self._follower}")
            self._must_be_out_of_range(self._reader.fetch(self._leader, PAST_END))

    def look_up(self) -> None:
        """As a consumer does that resets, or checks whether the log was cut."""
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
            self._reader.admin.list_partition_offsets({_PARTITION: spec})
        for epoch in (0, 99):
            self._reader.epoch_end(self._leader, epoch)

    def _must_be_out_of_range(self, read: Any) -> None:
        if read.error_code != OUT_OF_RANGE:
            raise KafkaError(f"{CLIENT}: error {read.error_code} where out of range is due")
        self.answers["out_of_range"] += 1


def _flush(producer: Producer) -> None:
    if left := producer.flush(30):
        raise KafkaError(f"{TOPIC}: {left} records not acknowledged")
