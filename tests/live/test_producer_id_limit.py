"""A limit of new connections holds the loop at its address, and nobody else (KIP-612)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread

import pytest

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.raw_connection import RawProducer
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.udfs.rules.limit import LimitBounds

from . import quiet_clients
from .test_feedback import apply, current, give_back, rows

USER, LOOP, ADDRESS = "erin", "limited-loop", "127.0.0.77"
TOPIC = "limited-innocent"
LIMIT = {"connection_creation_rate": "1"}
RECORDS_PER_S = 50
SETTLES_S, MEASURED_S = 2.0, 20.0
"""A broker counts connections of the last 11 seconds, so a fast loop gets ten at once and then
waits: 20 seconds have two such bursts at most."""


class Loop:
    """Makes a producer for each id, at every broker, from an address of its own."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.given = [0, 0, 0]
        self._cluster = cluster
        self._stop = Event()
        self._threads = [Thread(target=self._run, args=(n,), daemon=True) for n in range(3)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(40)
            assert not thread.is_alive()

    def _run(self, broker: int) -> None:
        while not self._stop.is_set():
            try:
                with RawProducer(self._cluster, USER, LOOP, broker, ADDRESS) as producer:
                    self.given[broker] += producer.init() is not None
            except (OSError, KafkaError):
                # The broker closed a connection over the rate.
                time.sleep(0.02)


class Calm:
    """A user elsewhere, with one producer; `waited_s` has the time to each acknowledgement."""

    def __init__(self, cluster: LocalCluster, user: str) -> None:
        calm = {"client_id": f"limited-{user}", "enable_idempotence": True, "linger_ms": 0}
        self.waited_s: list[float] = []
        self._producer = quiet_clients.producer(cluster, user, **calm)
        self.send()
        self.flush()

    def p99_s(self) -> float:
        """The p99 of these times."""
        return sorted(self.waited_s)[int(len(self.waited_s) * 0.99)]

    def send(self) -> None:
        """Send a record."""
        at_s = time.monotonic()

        def acked(error: object, _: object) -> None:
            assert error is None
            self.waited_s.append(time.monotonic() - at_s)

        self._producer.produce(TOPIC, b"x" * 1_000, on_delivery=acked)

    def poll(self) -> None:
        """Take acknowledgements that came."""
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait for every acknowledgement."""
        assert self._producer.flush(30) == 0

    def close(self) -> None:
        """End the producer: it would look for the brokers after they stopped."""
        del self._producer


@dataclass(frozen=True)
class Side:
    """The limited user's other program, and beside it one of another user.

    Both send by turns, so what the machine does meanwhile slows them alike.
    """

    innocent: Calm
    stranger: Calm

    def send(self, seconds: float) -> None:
        """Send at an even pace; every record must have an acknowledgement."""
        both = (self.innocent, self.stranger)
        for calm in both:
            calm.waited_s.clear()
        sent, began_s = 0, time.monotonic()
        while time.monotonic() - began_s < seconds:
            for calm in both if sent % 2 else reversed(both):
                calm.send()
            sent += 1
            while time.monotonic() < began_s + sent / RECORDS_PER_S:
                for calm in both:
                    calm.poll()
                time.sleep(0.0005)
        for calm in both:
            calm.flush()
            assert len(calm.waited_s) == sent


@contextmanager
def looping(cluster: LocalCluster) -> Iterator[Loop]:
    loop = Loop(cluster)
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


def rates(loop: Loop, side: Side, seconds: float) -> list[float]:
    """Ids per second that each broker gave the loop, while both others send."""
    before, began_s = list(loop.given), time.monotonic()
    side.send(seconds)
    lasted_s = time.monotonic() - began_s
    return [(now - then) / lasted_s for now, then in zip(loop.given, before, strict=True)]


@pytest.fixture
def side(cluster: LocalCluster) -> Iterator[Side]:
    cluster.create_topics([TOPIC], partitions=3, replication_factor=1)
    both = Side(Calm(cluster, USER), Calm(cluster, "admin"))
    yield both
    both.innocent.close()
    both.stranger.close()


@pytest.mark.shows("limits a storm of ids by connections of its address, where that is safe")
def test_a_loop_is_limited_and_an_innocent_of_its_user_keeps_its_p99(
    conf: Conf, cluster: LocalCluster, side: Side
) -> None:
    address = ConfigEntity(cluster.cluster_id, "ip", ADDRESS)
    with looping(cluster) as loop:
        free = rates(loop, side, SETTLES_S)
        assert min(free) > 5
        outcomes = apply(conf, rows(cluster.cluster_id, address, LIMIT))
        assert [outcome.step for outcome in outcomes] == ["done"]
        with current(conf) as read:
            assert read(address) == LIMIT
        side.send(SETTLES_S)
        limited = rates(loop, side, MEASURED_S)
        given_back = give_back(conf)
    assert max(limited) <= 1.2
    assert side.innocent.p99_s() <= 3 * side.stranger.p99_s()
    assert [outcome.step for outcome in given_back] == ["done"]
    with current(conf) as read:
        assert read(address) == {}


def test_a_limit_without_effect_is_reverted_with_the_first_plan_that_can_see_it(
    conf: Conf, cluster: LocalCluster
) -> None:
    address = ConfigEntity(cluster.cluster_id, "ip", "127.0.0.78")
    policy = PlanPolicy(limits=LimitBounds(settle=timedelta(seconds=SETTLES_S)))
    new_rows = rows(cluster.cluster_id, address, LIMIT)
    assert [o.step for o in apply(conf, new_rows, policy=policy)] == ["done"]
    with current(conf) as read:
        assert read(address) == LIMIT
    time.sleep(SETTLES_S)
    in_place = rows(cluster.cluster_id, address, LIMIT, prior_value="1")
    assert [(o.step, o.change.purpose) for o in apply(conf, in_place, policy=policy)] == [
        ("done", "restore")
    ]
    with current(conf) as read:
        assert read(address) == {}
