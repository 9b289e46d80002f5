"""Which Kafka release a broker is of, and what of this project loads there."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka.protocol.metadata import ApiVersionsRequest

from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError, sender

_FEATURE = "metadata.version"
_WITH_FEATURES = 3
_FIRST_LEVELS: Mapping[int, tuple[int, int]] = {
    **{1: (3, 0), 2: (3, 1), 3: (3, 2), 4: (3, 3), 8: (3, 4), 9: (3, 5), 12: (3, 6), 15: (3, 7)},
    **{20: (3, 8), 21: (3, 9), 22: (4, 0), 26: (4, 1), 28: (4, 2), 30: (4, 3), 31: (4, 4)},
}
"""First level of metadata.version -> release: Kafka's MetadataVersion."""
_LAST_LEVEL = 33
_TELEMETRY, _EXPORTERS, _LOG4J2 = (3, 7), (4, 2), (4, 0)


@dataclass(frozen=True, order=True, slots=True)
class Release:
    """A release, such as 4.3.

    `is_newer` marks one that is newer than all in the list; `is_guess` one by the APIs it offers.
    """

    major: int
    minor: int
    is_newer: bool = False
    is_guess: bool = False

    def __str__(self) -> str:
        about = " or newer" if self.is_newer else " by the APIs offered" if self.is_guess else ""
        return f"{self.major}.{self.minor}{about}"

    @property
    def takes_telemetry(self) -> bool:
        """Whether clients may push to it if a reporter takes telemetry (KIP-714)."""
        return (self.major, self.minor) >= _TELEMETRY

    @property
    def loads_receiver(self) -> bool:
        """Whether it has the interfaces of TelemetryReceiver.java (KIP-1217)."""
        return (self.major, self.minor) >= _EXPORTERS

    @property
    def has_log4j2(self) -> bool:
        """Whether it logs by log4j2, and not by reload4j (KIP-653)."""
        return (self.major, self.minor) >= _LOG4J2

    @property
    def layout(self) -> str:
        """The file of `broker/` for its request log."""
        return "log4j2.yaml" if self.has_log4j2 else "log4j.properties"


NEWEST = Release(*max(_FIRST_LEVELS.values()))
"""The newest release of the list."""


def of_level(level: int) -> Release:
    """The release whose brokers support this level of metadata.version, and none above."""
    first = max(each for each in _FIRST_LEVELS if each <= level)
    return Release(*_FIRST_LEVELS[first], is_newer=level > _LAST_LEVEL)


def of_broker(client: KafkaAdminClient, broker_id: int) -> Release:
    """The release of a broker, from the newest metadata.version that it supports.

    Before 3.0 and with ZooKeeper a broker has none, and its APIs have to do (`is_guess`). Raises
    kafka-python's KafkaError.
    """
    guessed = client.get_broker_version_data(broker_id).broker_version
    request = ApiVersionsRequest(
        client_software_name="quotaflow", client_software_version="1", min_version=_WITH_FEATURES
    )
    try:
        features = ClusterState(sender(client), attempts=1).ask(request, broker_id)
    except UnansweredError:
        return Release(guessed[0], guessed[1], is_guess=True)
    levels = {each.name: each.max_version for each in features.supported_features or ()}
    if levels.get(_FEATURE, 0) < min(_FIRST_LEVELS):
        return Release(guessed[0], guessed[1], is_guess=True)
    return of_level(levels[_FEATURE])
