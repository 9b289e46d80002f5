"""Requests wait while a broker throttles this login; what is away for another reason fails."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors as kafka_errors

from quotaflow.pipelines.kafka import throttled_login
from quotaflow.pipelines.kafka.throttled_login import MAX_WAIT_S


@dataclass
class Manager:
    """The part of kafka-python's connection manager that sends, on a clock of its own."""

    now: float = 0.0
    throttle_s: float = 0.0
    fails_with: Exception | None = None
    sent: int = 0
    waited: list[float] = field(default_factory=list)
    _conns: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._net = SimpleNamespace(sleep=self._sleep)
        for broker_id in (1, 2):
            self._conns[broker_id] = SimpleNamespace(_throttle_time=0.0, paused=set())

    async def send(self, request: str, node_id: int | None, _timeout_ms: float | None) -> str:
        """Answers, and throttles the connection from then on, as brokers do."""
        if self.fails_with:
            raise self.fails_with
        ready = [n for n in self._conns if node_id in {None, n} and not self._is_paused(n)]
        if not ready:
            raise kafka_errors.NodeNotReadyError(f"Node paused: {node_id}")
        connection = self._conns[ready[0]]
        if self.throttle_s:
            connection._throttle_time = self.now + self.throttle_s
            connection.paused.add("throttle")
        self.sent += 1
        return request

    def _is_paused(self, broker_id: int) -> bool:
        connection = self._conns[broker_id]
        if self.now >= connection._throttle_time:
            connection.paused.discard("throttle")
        return bool(connection.paused)

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


def send(manager: Manager, count: int, broker_id: int | None) -> list[str]:
    client: Any = SimpleNamespace(_manager=manager)
    throttled_login.wait_while_throttled(client, lambda: manager.now)

    async def all_of_them() -> list[str]:
        patched: Any = manager
        return [await patched.send(f"r{n}", broker_id) for n in range(count)]

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(
    ("broker_id", "waits"), [(1, 49), (None, 24)], ids=["one broker", "the first free of two"]
)
def test_every_request_of_a_throttled_login_is_answered(broker_id: int | None, waits: int) -> None:
    manager = Manager(throttle_s=1.0)
    assert len(send(manager, 50, broker_id)) == manager.sent == 50
    assert manager.waited.count(1.0) == waits


def test_a_throttle_that_is_too_long_is_not_waited_for() -> None:
    manager = Manager(throttle_s=MAX_WAIT_S + 1)
    with pytest.raises(kafka_errors.NodeNotReadyError):
        send(manager, 2, 1)
    assert (manager.sent, manager.waited) == (1, [])


@pytest.mark.parametrize(
    "error",
    [
        kafka_errors.NodeNotReadyError("1"),
        kafka_errors.KafkaConnectionError(),
        kafka_errors.RequestTimedOutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_away_fails_at_once(error: Exception) -> None:
    manager = Manager(fails_with=error)
    with pytest.raises(type(error)):
        send(manager, 1, 1)
    assert manager.waited == []
