"""Ships request-log lines to a topic: every line once, except its own and those with secrets."""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from types import TracebackType
from typing import Any, Protocol, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from quotaflow.demo.line_filter import CLIENT_ID, OwnLines, holds_secret
from quotaflow.demo.rotated_log import RotatedLog

MAX_LINE_BYTES = 4 << 20
"""Room for a PUSH line of `telemetry.max.bytes` (1 MiB) in base64, and more."""

_LOOK_EVERY_S = 0.1
_CLOSE_TIMEOUT_S = 10.0

Settled = Callable[[str], None]
"""Called once per line with its outcome: `acked`, `too_long`, or `failed`."""


class Sink(Protocol):
    """Where lines go; `settled` may be called from `send` or from `flush`."""

    def send(self, broker_id: int, line: bytes, settled: Settled) -> None: ...

    def flush(self, timeout_s: float) -> int:
        """Wait until every line is settled. Returns how many are not."""
        ...

    def give_up(self) -> None:
        """Accept no more lines, also from a `send` that waits for room; waiting lines fail."""
        ...

    def close(self) -> None:
        """Give up lines that are not settled."""
        ...


@dataclass(frozen=True, slots=True)
class ShipperCounts:
    """Lines since the start; `read` = all others together once everything is settled."""

    read: int = 0
    acked: int = 0
    own: int = 0
    secret: int = 0
    filtered: int = 0
    too_long: int = 0
    failed: int = 0


class KafkaSink:
    """One record per line, key and header `broker_id`, by an idempotent zstd producer."""

    def __init__(self, properties: Mapping[str, str], topic: str, max_line_bytes: int) -> None:
        self._topic = topic
        self._is_given_up = Event()
        self._producer = Producer(
            {
                **properties,
                "client.id": CLIENT_ID,
                "enable.idempotence": True,
                "compression.type": "zstd",
                "linger.ms": 200,
                "enable.metrics.push": False,
                "message.max.bytes": max_line_bytes + 1024,
                "message.timeout.ms": 0,
                "queue.buffering.max.kbytes": 64 << 10,
            },
            logger=getLogger(__name__),
        )

    def send(self, broker_id: int, line: bytes, settled: Settled) -> None:
        key = str(broker_id).encode()

        def delivered(error: KafkaError | None, _message: Message) -> None:
            settled("acked" if error is None else _fate(error))

        while True:
            try:
                self._producer.produce(
                    self._topic, line, key, headers=[("broker_id", key)], on_delivery=delivered
                )
            except BufferError:
                if self._is_given_up.is_set():
                    return settled("failed")
                self._producer.poll(_LOOK_EVERY_S)
            except KafkaException as refused:
                return settled(_fate(refused.args[0]))
            else:
                self._producer.poll(0)
                return None

    def flush(self, timeout_s: float) -> int:
        return int(self._producer.flush(timeout_s))

    def give_up(self) -> None:
        self._is_given_up.set()

    def close(self) -> None:
        self._producer.purge()
        self._producer.close()


def _fate(error: KafkaError) -> str:
    return "too_long" if error.code() == KafkaError.MSG_SIZE_TOO_LARGE else "failed"


class Shipper:
    """Follows the request log of every broker and ships it; a context manager with its own thread.

    `properties` are librdkafka's; `files` are by broker id; `is_filtered` selects omitted lines.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        topic: str,
        files: Mapping[int, Path],
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        is_filtered: Callable[[bytes], bool] = lambda _line: False,
        sink: Sink | None = None,
    ) -> None:
        user = properties.get("sasl.username")
        self._is_own = OwnLines(principal=user and f"User:{user}")
        self._is_filtered = is_filtered
        self._sink = sink or KafkaSink(properties, topic, max_line_bytes)
        self._logs = {id_: RotatedLog(path, max_line_bytes) for id_, path in files.items()}
        self._counts: Counter[str] = Counter()
        self._drains: SimpleQueue[tuple[float, Future[int]]] = SimpleQueue()
        self._is_running = Event()
        self._is_closing = False
        self._thread = ThreadPoolExecutor(1, "shipper")

    def __enter__(self) -> Self:
        self._loop = self._thread.submit(self._run)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_closing = True
        self._is_running.set()
        # Without brokers a line can wait for room that never comes.
        wait([self._loop], _CLOSE_TIMEOUT_S)
        self._sink.give_up()
        self._thread.shutdown()
        self._sink.flush(_CLOSE_TIMEOUT_S)
        self._sink.close()
        for log in self._logs.values():
            log.close()
        if error is None:
            self._loop.result()

    @property
    def counts(self) -> ShipperCounts:
        """The outcome of the lines so far."""
        return ShipperCounts(**self._counts)

    def drain(self, timeout_s: float = 30.0) -> ShipperCounts:
        """Return once every line written before this call is acked or counted otherwise."""
        drained: Future[int] = Future()
        self._drains.put((timeout_s, drained))
        self._is_running.set()
        either: set[Future[Any]] = {drained, self._loop}
        wait(either, timeout_s, FIRST_COMPLETED)
        if self._loop.done():
            self._loop.result()
        if not drained.done() or drained.result():
            raise TimeoutError(f"the request log was not shipped in {timeout_s} s: {self.counts}")
        return self.counts

    def _run(self) -> None:
        while not self._is_closing:
            self._is_running.wait(_LOOK_EVERY_S)
            self._is_running.clear()
            requested = self._drain_requested()
            self._ship()
            for timeout_s, drained in requested:
                drained.set_result(self._sink.flush(timeout_s))

    def _drain_requested(self) -> list[tuple[float, Future[int]]]:
        requested = []
        try:
            while True:
                requested.append(self._drains.get_nowait())
        except Empty:
            return requested

    def _ship(self) -> None:
        for broker_id, log in self._logs.items():
            for line in log.lines():
                self._counts["read"] += 1
                if line is None:
                    self._counts["too_long"] += 1
                elif self._is_own(line):
                    self._counts["own"] += 1
                elif holds_secret(line):
                    self._counts["secret"] += 1
                elif self._is_filtered(line):
                    self._counts["filtered"] += 1
                else:
                    self._sink.send(broker_id, line, self._settle)

    def _settle(self, fate: str) -> None:
        self._counts[fate] += 1
