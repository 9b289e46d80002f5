"""A compacted topic of one partition as a store: read to its end, and written with acks=all."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka import admin, rights, transport_patch
from quotaflow.udfs.counted import counted

Item = tuple[bytes, bytes | None]
"""Key and value of a record; without a value it is a tombstone."""
Sleep = Callable[[float], None]
_T = TypeVar("_T")

_WAIT_MS = 200
_READ_WITHIN_S = 180
# A broker that throttles the login answers a fetch without records until the login was quiet for as
# long as the windows of a quota last: 11 of a second (quota.window.num).
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 12.0
_WRITE_WITHIN_S = 60
_ELECTED_WITHIN_S, _ELECTION_PAUSE_S, _QUESTION_MS = 60.0, 0.2, 5_000
"""A partition has no leader for broker.session.timeout.ms (9 s) after its broker died, and for some
seconds more on a busy machine."""
_MAX_REQUEST_BYTES = 1_000_000
_CONFIGS = {"client_id": "quotaflow-leases", "allow_auto_create_topics": False}


@dataclass(slots=True)
class CompactedTopic:
    """An existing topic. Methods raise KafkaError, which names what the login needs."""

    name: str
    properties: Mapping[str, str]
    consumer: Any
    sleep: Sleep = time.sleep
    _producer: Any = field(default=None)

    def read(self) -> list[Item]:
        """The records that came since the last read, up to the end of the topic now."""
        with _errors(self.name):
            (partition,) = self.consumer.assignment()
            offsets = partial(self.consumer.end_offsets, [partition], timeout_ms=_QUESTION_MS)
            end = _answered(self.consumer, offsets, self.sleep)[partition]
            items: list[Item] = []
            deadline = time.monotonic() + _READ_WITHIN_S
            pause_s = _FIRST_PAUSE_S
            while self.consumer.position(partition) < end:
                polled = self.consumer.poll(timeout_ms=_WAIT_MS).values()
                items += [(each.key or b"", each.value) for records in polled for each in records]
                if polled:
                    pause_s = _FIRST_PAUSE_S
                    continue
                if time.monotonic() > deadline:
                    raise KafkaError(f"topic {self.name} was not read in {_READ_WITHIN_S} s")
                self.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            return items

    def append(self, items: Sequence[Item]) -> None:
        """Write records in this order; all in-sync replicas have them when this returns."""
        with _errors(self.name):
            if self._producer is None:
                self._producer = KafkaProducer(**_options(self.properties), **_DURABLE)
            sent = [
                self._producer.send(self.name, key=key, value=value, partition=0)
                for key, value in items
            ]
            self._producer.flush(timeout=_WRITE_WITHIN_S)
            for future in sent:
                future.get(timeout=_WRITE_WITHIN_S)

    def close(self) -> None:
        """Close the connections."""
        self.consumer.close()
        if self._producer is not None:
            self._producer.close(timeout=1)


# One request at a time keeps the order. A producer id would count as one of ours.
_DURABLE: Mapping[str, Any] = {
    "acks": "all",
    "enable_idempotence": False,
    "retries": 5,
    "max_in_flight_requests_per_connection": 1,
    "max_request_size": _MAX_REQUEST_BYTES,
}


@contextmanager
def opened(properties: Mapping[str, str], name: str) -> Iterator[CompactedTopic | None]:
    """The topic; None if it does not exist. Raises KafkaError if it cannot be read."""
    transport_patch.patch()
    with _errors(name):
        consumer = KafkaConsumer(**_options(properties), group_id=None, enable_auto_commit=False)
    with closing(consumer):
        with _errors(name):
            ask = partial(consumer.partitions_for_topic, name)
            partitions = _answered(consumer, ask, time.sleep)
        if not partitions:
            yield None
            return
        if len(partitions) != 1:
            raise KafkaError(
                f"topic {name} has {counted(len(partitions), 'partition')}: it must have 1"
            )
        with _errors(name):
            partition = TopicPartition(name, 0)
            consumer.assign([partition])
            offsets = partial(consumer.beginning_offsets, [partition], timeout_ms=_QUESTION_MS)
            consumer.seek(partition, _answered(consumer, offsets, time.sleep)[partition])
        with closing(CompactedTopic(name, properties, consumer)) as topic:
            yield topic


def _answered(consumer: KafkaConsumer, question: Callable[[], _T], sleep: Sleep) -> _T:
    """The answer to a question, also where a broker that died just now would have answered it."""
    deadline = time.monotonic() + _ELECTED_WITHIN_S
    while True:
        try:
            return question()
        except kafka_errors.KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
        sleep(_ELECTION_PAUSE_S)
        # A connection that is refused does not let the client ask who leads now. It may ask the
        # broker that is gone.
        with suppress(kafka_errors.RetriableError):
            consumer.topics()


def _options(properties: Mapping[str, str]) -> dict[str, Any]:
    return admin.options(properties) | _CONFIGS


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except kafka_errors.KafkaError as error:
        text = getattr(error, "message", None) or type(error).__name__
        needs = rights.hint("apply", f"{text} {type(error).__name__}")
        raise KafkaError(f"topic {name} did not answer: {error}{needs}") from None
