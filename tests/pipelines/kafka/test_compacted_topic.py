"""A compacted topic is read to its end, also by a login that brokers throttle."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka import TopicPartition
from kafka import errors as kafka_errors

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka.compacted_topic import CompactedTopic

from ...cases import cases

PARTITION = TopicPartition("leases", 0)


@dataclass
class Consumed:
    """A record as kafka-python has it."""

    key: bytes
    value: bytes | None


@dataclass
class Consumer:
    """Gives a record per poll, and none while it was polled less than `quiet_s` before."""

    records: list[Consumed]
    quiet_s: float = 0
    now: float = 100
    at: int = 0
    polled_at: float = 0
    pauses: list[float] = field(default_factory=list)

    def assignment(self) -> set[TopicPartition]:
        return {PARTITION}

    def end_offsets(self, _: object, timeout_ms: int) -> dict[TopicPartition, int]:  # noqa: ARG002
        return {PARTITION: len(self.records)}

    def position(self, _: object) -> int:
        return self.at

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Consumed]]:
        is_throttled = self.now - self.polled_at < self.quiet_s
        self.polled_at = self.now
        self.now += timeout_ms / 1_000
        if is_throttled:
            return {}
        self.at += 1
        return {PARTITION: [self.records[self.at - 1]]}

    def sleep(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now += pause_s


def opened(consumer: Any) -> CompactedTopic:
    return CompactedTopic("leases", {}, consumer, consumer.sleep)


def test_records_and_tombstones_come_once_in_their_order() -> None:
    consumer = Consumer([Consumed(b"a", b"1"), Consumed(b"a", None)])
    topic = opened(consumer)
    assert topic.read() == [(b"a", b"1"), (b"a", None)]
    assert topic.read() == []
    consumer.records.append(Consumed(b"b", b"2"))
    assert topic.read() == [(b"b", b"2")]
    assert consumer.pauses == []


def test_a_throttled_login_waits_until_the_windows_of_its_quota_are_over() -> None:
    consumer = Consumer([Consumed(b"a", b"1"), Consumed(b"b", b"2")], quiet_s=11)
    assert len(opened(consumer).read()) == 2
    assert max(consumer.pauses) >= 11


@dataclass
class Elected(Consumer):
    """Its leader is gone until `elected_at`, and who asks for topics then learns of the next."""

    elected_at: float = 0
    learned_at: float = 0
    error: Exception = field(default_factory=kafka_errors.KafkaConnectionError)

    def topics(self) -> set[str]:
        # The client may ask the broker that is gone.
        if self.now < self.elected_at:
            raise self.error
        self.learned_at = self.now
        return set()

    def end_offsets(self, partitions: object, timeout_ms: int) -> dict[TopicPartition, int]:
        if self.learned_at < self.elected_at:
            raise self.error
        return super().end_offsets(partitions, timeout_ms)


def test_a_leader_that_died_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Elected([Consumed(b"a", b"1")], elected_at=109)
    monkeypatch.setattr(time, "monotonic", lambda: consumer.now)
    assert opened(consumer).read() == [(b"a", b"1")]


@cases(
    ("error", "waits"),
    ("no leader for more than a minute", kafka_errors.KafkaConnectionError(), True),
    ("no right", kafka_errors.TopicAuthorizationFailedError(), False),
)
def test_it_is_not_awaited_for_ever(
    error: Exception, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = Elected([Consumed(b"a", b"1")], elected_at=190, error=error)
    monkeypatch.setattr(time, "monotonic", lambda: consumer.now)
    with pytest.raises(KafkaError, match="topic leases did not answer"):
        opened(consumer).read()
    assert (consumer.now > 150) is waits


def test_a_topic_that_is_not_read_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer([Consumed(b"a", b"1")], quiet_s=1e9, polled_at=1e9)
    monkeypatch.setattr(time, "monotonic", lambda: consumer.now)
    with pytest.raises(KafkaError, match="topic leases was not read in 180 s"):
        opened(consumer).read()
