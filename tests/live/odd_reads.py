"""A consumer that reads as none should (KIP-392): out of range, past the end, in circles."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Message, Producer
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest

from quotaflow.demo.cluster import LocalCluster

TOPIC, CLIENT, USER = "odd-reads", "odd-reader", "carol"
RECORDS, FIRST = 30, 10
PAST_END = 1_000_000
AGAIN = 6
OUT_OF_RANGE = 1
ROUNDS = 100
_PARTITION = TopicPartition(TOPIC, 0)
_ALL_NAMES = 12
_QUIET_S = 50


@dataclass
class Reads:
    """What was answered: who leads, who follows in which rack, and answers by what was wrong."""

    leader: int = -1
    follower: int = -1
    answers: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Reader:
    """Fetches partition 0 by hand, from any broker and offset."""

    admin: KafkaAdminClient

    def send(self, request: Any, broker_id: int) -> Any:
        return self.admin._manager.run(self.admin._manager.send, request, broker_id)

    def fetch(self, broker_id: int, offset: int, rack: str = "") -> Any:
        """The partition as it was answered, without a session and without waiting."""
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=0, current_leader_epoch=-1, fetch_offset=offset, partition_max_bytes=100
        )
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1_000,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])],
            rack_id=rack,
            max_version=_ALL_NAMES,
        )
        return self.send(request, broker_id).responses[0].partitions[0]

    def epoch_end(self, broker_id: int, epoch: int) -> Any:
        """What an epoch check is answered (KIP-320)."""
        topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        partition = topic_class.OffsetForLeaderPartition(
            partition=0, current_leader_epoch=-1, leader_epoch=epoch
        )
        topic = topic_class(topic=TOPIC, partitions=[partition])
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
        return self.send(request, broker_id).topics[0].partitions[0]


def work(cluster: LocalCluster) -> Reads:
    """All that can go wrong, within one minute by the brokers' clocks."""
    cluster.create_topics([TOPIC], partitions=1)
    login = cluster.librdkafka_properties("alice") | {"linger.ms": 0}
    # A leader deletes no record that it does not know its followers to have.
    patient, producer = Producer(login), Producer(login | {"acks": 1})
    for _ in range(RECORDS):
        patient.produce(TOPIC, bytes(10), partition=0)
    assert patient.flush(30) == 0
    done = Reads()
    with cluster.admin() as admin:
        (partition,) = admin.describe_topics([TOPIC])[0]["partitions"]
        done.leader = partition["leader_id"]
        done.follower = next(n for n in partition["replica_nodes"] if n != done.leader)
        admin.delete_records({_PARTITION: FIRST})
    if time.time() % 60 > _QUIET_S:
        time.sleep(60 - time.time() % 60)
    with cluster.admin(USER, client_id=CLIENT) as admin:
        reader = Reader(admin)
        _read_out_of_range(reader, done)
        _read_too_early(reader, producer, done)
        _go_in_circles(reader, cluster.racks[done.follower], done)
        _look_up(reader, done)
    return done


def _read_out_of_range(reader: Reader, done: Reads) -> None:
    for broker_id in (done.leader, done.follower):
        while reader.fetch(broker_id, FIRST).high_watermark < RECORDS:
            time.sleep(0.01)
        for offset in (FIRST - 1, PAST_END):
            assert reader.fetch(broker_id, offset).error_code == OUT_OF_RANGE
            done.answers["out_of_range"] += 1


def _read_too_early(reader: Reader, producer: Producer, done: Reads) -> None:
    """Reads from where records end that only the leader has yet."""
    ends: list[int] = []

    def tell(_: object, message: Message) -> None:
        ends.append(int(message.offset() or 0) + 1)

    for _ in range(ROUNDS):
        before = len(ends)
        for _ in range(20):
            producer.produce(TOPIC, bytes(10), partition=0, on_delivery=tell)
        while len(ends) == before:
            producer.poll(0.001)
        for broker_id in (done.follower, done.leader):
            read = reader.fetch(broker_id, ends[-1])
            if read.error_code == OUT_OF_RANGE:
                done.answers["out_of_range"] += 1
                done.answers["unavailable"] += 1
            elif read.high_watermark < ends[-1]:
                done.answers["uncommitted"] += 1
        if min(done.answers["unavailable"], done.answers["uncommitted"]) > 0:
            break
    assert producer.flush(30) == 0
    while reader.fetch(done.leader, ends[-1]).high_watermark < ends[-1]:
        done.answers["uncommitted"] += 1
        time.sleep(0.01)


def _go_in_circles(reader: Reader, rack: str, done: Reads) -> None:
    for _ in range(AGAIN):
        assert reader.fetch(done.leader, FIRST, rack).preferred_read_replica == done.follower
        assert reader.fetch(done.leader, PAST_END).error_code == OUT_OF_RANGE
        done.answers["out_of_range"] += 1


def _look_up(reader: Reader, done: Reads) -> None:
    """As a consumer does that resets, or checks whether the log was cut."""
    for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
        reader.admin.list_partition_offsets({_PARTITION: spec})
    assert reader.epoch_end(done.leader, 0).end_offset >= 0
    assert reader.epoch_end(done.leader, 99).end_offset < 0
