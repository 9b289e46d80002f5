"""Releases of brokers, and what doctor and init say of each."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import UnsupportedVersionError

from quotaflow.pipelines.doctor import brokers, managed_services
from quotaflow.pipelines.kafka import release
from quotaflow.pipelines.kafka.release import Release

from ...cases import cases

LEVELS = {"3.9.2": 21, "4.0.2": 25, "4.1.2": 27, "4.2.2": 29, "4.3.1": 30, "4.4.0": 33}
"""The newest level that a broker of each release offered, when it was started here."""
TELEMETRY = {71, 72}


@dataclass
class Broker:
    """Stands in for kafka-python's client of one broker."""

    level: int | None
    by_apis: tuple[int, int] = (3, 9)
    is_old: bool = False

    @property
    def _manager(self) -> Any:
        return SimpleNamespace(run=self._run, send=None)

    def _run(self, _send: Any, _request: Any, _broker: int) -> Any:
        if self.is_old:
            raise UnsupportedVersionError
        level = SimpleNamespace(name="metadata.version", max_version=self.level)
        return SimpleNamespace(error_code=0, supported_features=[level] if self.level else [])

    def get_broker_version_data(self, _broker: int) -> Any:
        return SimpleNamespace(broker_version=self.by_apis)


@pytest.mark.parametrize(("version", "level"), LEVELS.items())
def test_a_broker_is_of_the_release_whose_levels_it_offers(version: str, level: int) -> None:
    of_broker: Any = release.of_broker(Broker(level), 1)  # type: ignore[arg-type]
    assert str(of_broker) == version.rpartition(".")[0]


@cases(
    ("broker", "text"),
    ("a level past the list", Broker(40), "4.4 or newer"),
    ("ZooKeeper", Broker(None), "3.9 by the APIs offered"),
    ("before features", Broker(None, (2, 3), True), "2.3 by the APIs offered"),
)
def test_a_release_that_no_level_names(broker: Any, text: str) -> None:
    assert str(release.of_broker(broker, 1)) == text


def test_releases_of_several_brokers_are_named_with_them() -> None:
    new, old = Release(4, 4), Release(3, 9)
    assert brokers.named({1: new, 2: new}) == "Kafka 4.4"
    assert (
        brokers.named({1: new, 2: old, 3: new})
        == "Kafka 3.9 on broker 2, Kafka 4.4 on brokers 1, 3"
    )


@cases(
    ("of_broker", "servers", "advised", "not_advised"),
    ("it loads", Release(4, 2), "b:9092", "TelemetryReceiver.java", "TelemetryGate"),
    ("the gate", Release(4, 1), "b:9092", "TelemetryGate.java", "TelemetryReceiver.java"),
    ("no telemetry", Release(3, 6), "b:9092", "upgrade to 3.7", ".java"),
    (
        "a managed service",
        Release(4, 2),
        "b-1.orders.abc.c2.kafka.eu-central-1.amazonaws.com:9098",
        "loads no metrics reporter of yours",
        ".java",
    ),
)
def test_no_receiver_is_advised_where_it_cannot_load(
    of_broker: Release, servers: str, advised: str, not_advised: str
) -> None:
    service = managed_services.of_servers(servers)
    finding = brokers.receiver({1: {0, 1}}, {1: of_broker}, service)
    assert (finding.state, finding.observed) == ("warning", "no telemetry receiver on broker 1")
    assert advised in finding.remedy
    assert not_advised not in finding.remedy


def test_where_clients_may_push_nothing_is_advised() -> None:
    assert brokers.receiver({1: TELEMETRY}, {1: Release(4, 1)}).state == "ok"
