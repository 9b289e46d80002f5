"""librdkafka clients of the demo, good and bad: each does its share and reports it."""

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, ThrottleEvent

from quotaflow.demo.traffic_report import LIBRDKAFKA, ClientReport
from quotaflow.demo.traffic_stage import Stage
from quotaflow.pipelines import errors

_FLUSH_TIMEOUT_S = 60.0
_FLUSH_STEP_S = 0.5
_BATCH_RECORDS = 5
_ABORT_EVERY = 5
_MIN_PUSHES = 3
_PUSHES_TIMEOUT_S = 15.0
_ANSWERED_AFTER_S = 0.4
_ANSWER_TIMEOUT_S = 5.0
_AT_WORK = 8
"""librdkafka requests a producer id half a second after its start: so many start meanwhile."""


class ClientLog:
    """Reads librdkafka's log: the producer ids it gets, the pushes it sends."""

    _GIVEN = re.compile(r"(?:Acquired|Ignoring InitProduceId response) \(?PID\{Id:(\d+)")
    _INSTANCE = re.compile(r"client instance id ([\w+/-]{22})$")

    _ANSWERED = re.compile(r"Acquired PID|Ignoring InitProduceId|Failed to acquire PID:")

    def __init__(self) -> None:
        self.ids_awaited = 0
        self.producer_ids: set[int] = set()
        self.client_instances: set[str] = set()
        self.pushes = 0
        self.throttled_responses = 0

    def log(self, _level: int, text: str, *args: object) -> None:
        """Called by confluent-kafka in place of a logger's method, from poll and flush."""
        line = text % args
        self.pushes += "Sending PushTelemetry" in line
        self.ids_awaited += "Acquiring ProducerId" in line
        self.ids_awaited -= self._ANSWERED.search(line) is not None
        if given := self._GIVEN.search(line):
            self.producer_ids.add(int(given[1]))
        if instance := self._INSTANCE.search(line):
            self.client_instances.add(instance[1])

    def throttled(self, event: ThrottleEvent) -> None:
        """Called on every throttled response."""
        self.throttled_responses += event.throttle_time > 0

    def add(self, other: "ClientLog") -> None:
        """Add the counts of another client of the same client id."""
        self.producer_ids |= other.producer_ids
        self.client_instances |= other.client_instances
        self.pushes += other.pushes
        self.throttled_responses += other.throttled_responses

    def report(self, user: str, client_id: str, acked: Mapping[str, int]) -> ClientReport:
        """A report of the client's work, as far as its log shows."""
        return ClientReport(
            principal=f"User:{user}",
            client_id=client_id,
            software=LIBRDKAFKA,
            records_acked=dict(acked),
            producer_ids=len(self.producer_ids),
            client_instances=len(self.client_instances),
            pushes=self.pushes,
            throttled_responses=self.throttled_responses,
        )


def _await_push(stage: Stage, log: ClientLog, poll: Callable[[float], object]) -> None:
    """Run for at least three pushes, and until one is answered: none is due at the close."""
    poll(0.0)
    pushes = max(_MIN_PUSHES, log.pushes + 1)
    deadline_s = time.monotonic() + _PUSHES_TIMEOUT_S
    while log.pushes < pushes and time.monotonic() < deadline_s and not stage.stop.is_set():
        poll(0.1)
    stage.stop.wait(_ANSWERED_AFTER_S)


class RecordProducer:
    """An idempotent librdkafka producer that counts acknowledged records by topic."""

    def __init__(self, stage: Stage, user: str, client_id: str, **config: object) -> None:
        self.log = ClientLog()
        self.acked: Counter[str] = Counter()
        self._stage = stage
        self._user = user
        self._client_id = client_id
        properties: dict[str, Any] = {
            **stage.cluster.librdkafka_properties(user),
            "client.id": client_id,
            "enable.idempotence": True,
            "linger.ms": 20,
            "debug": "eos,telemetry",
            "throttle_cb": self.log.throttled,
            **config,
        }
        self.kafka = Producer(properties, logger=self.log)

    def send(self, topic: str, value: bytes, partition: int = -1) -> None:
        """Produce one record; waits while the producer's queue is full."""
        while True:
            try:
                self.kafka.produce(topic, value, partition=partition, on_delivery=self._delivered)
                self.kafka.poll(0)
            except BufferError:
                self.kafka.poll(0.1)
                if self._stage.stop.is_set():
                    return
            else:
                return

    def finish(self) -> None:
        """Wait for every acknowledgement, or for the stage's end."""
        deadline_s = time.monotonic() + _FLUSH_TIMEOUT_S
        while (left := self.kafka.flush(_FLUSH_STEP_S)) and not self._stage.stop.is_set():
            if time.monotonic() > deadline_s:
                raise errors.KafkaError(f"{self._client_id}: {left} records not acknowledged")

    def close(self) -> None:
        """Read the log so far, send the terminating push, and disconnect.

        librdkafka requests an id of a second broker when the first is slow: both ids count.
        """
        timeout_s = 0.0 if self._stage.stop.is_set() else _ANSWER_TIMEOUT_S
        deadline_s = time.monotonic() + timeout_s
        while self.kafka.poll(0.0) or (self.log.ids_awaited > 0 and time.monotonic() < deadline_s):
            self.kafka.poll(0.02)
        self.kafka.close()

    def report(self) -> ClientReport:
        """A report of this client's work."""
        return self.log.report(self._user, self._client_id, self.acked)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise errors.KafkaError(f"{self._client_id}: {error}")
        self.acked[message.topic() or ""] += 1


def steady(
    stage: Stage, user: str, client_id: str, topic: str, *, records: int, bytes_each: int
) -> ClientReport:
    """A well-behaved producer: one session, one producer id, an even pace."""
    random = stage.random(client_id)
    producer = RecordProducer(stage, user, client_id)
    for _ in stage.paced(records):
        producer.send(topic, random.randbytes(random.randint(bytes_each // 2, bytes_each)))
    producer.finish()
    _await_push(stage, producer.log, producer.kafka.poll)
    producer.close()
    return producer.report()


def transactional(
    stage: Stage, user: str, client_id: str, topic: str, *, transactions: int
) -> ClientReport:
    """A transactional producer; every fifth transaction is aborted."""
    random = stage.random(client_id)
    producer = RecordProducer(stage, user, client_id, **{"transactional.id": client_id})
    producer.kafka.init_transactions(_FLUSH_TIMEOUT_S)
    ended: Counter[str] = Counter()
    for n in stage.paced(transactions):
        producer.kafka.begin_transaction()
        for _ in range(random.randint(1, 2 * _BATCH_RECORDS)):
            producer.send(topic, random.randbytes(300))
        producer.finish()
        is_aborted = n % _ABORT_EVERY == _ABORT_EVERY - 1
        kafka = producer.kafka
        (kafka.abort_transaction if is_aborted else kafka.commit_transaction)(_FLUSH_TIMEOUT_S)
        ended["aborted" if is_aborted else "committed"] += 1
    _await_push(stage, producer.log, producer.kafka.poll)
    producer.close()
    return replace(
        producer.report(),
        transactions_committed=ended["committed"],
        transactions_aborted=ended["aborted"],
    )


def new_producer_per_batch(
    stage: Stage, user: str, client_id: str, topic: str, *, producers: int, partitions: int
) -> ClientReport:
    """KIP-936's offender: a new idempotent producer, and so a new producer id, for every batch."""
    random = stage.random(client_id)
    acked: Counter[str] = Counter()
    seen = ClientLog()

    def end(producer: RecordProducer) -> None:
        producer.finish()
        producer.close()
        acked.update(producer.acked)
        seen.add(producer.log)

    at_work: deque[RecordProducer] = deque()
    for _ in stage.spaced(producers):
        producer = RecordProducer(stage, user, client_id, **{"linger.ms": 5})
        partition = random.randrange(partitions)
        for _ in range(_BATCH_RECORDS):
            producer.send(topic, random.randbytes(100), partition)
        at_work.append(producer)
        if len(at_work) > _AT_WORK:
            end(at_work.popleft())
    for producer in at_work:
        end(producer)
    return seen.report(user, client_id, acked)


def consume(
    stage: Stage, user: str, client_id: str, topic: str, *, records: int, rack: str, group: str
) -> ClientReport:
    """Read a topic from its beginning, in a group, until `records` came; "" declares no rack."""
    log = ClientLog()
    properties = {
        **stage.cluster.librdkafka_properties(user),
        "client.id": client_id,
        "client.rack": rack,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "debug": "telemetry",
    }
    consumer = Consumer(properties, logger=log)
    consumer.subscribe([topic])
    count = 0
    while count < records and not stage.stop.is_set():
        message = consumer.poll(0.2)
        if message is None:
            continue
        if (error := message.error()) is not None:
            raise errors.KafkaError(f"{client_id}: {error}")
        count += 1
    consumer.pause(consumer.assignment())
    _await_push(stage, log, consumer.poll)
    consumer.close()
    return replace(
        log.report(user, client_id, acked={}),
        records_consumed={topic: count},
        rack=rack or None,
        group=group,
    )
