"""What the demo's clients really did, each by its own count: the truth tables are held against."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

JAVA = "apache-kafka-java"
LIBRDKAFKA = "librdkafka"
RAW = "unknown"
"""What brokers log of a client that never said which software it is."""


@dataclass(frozen=True, slots=True)
class ClientReport:
    """One client id of one principal. Counts are by topic where Kafka counts by topic.

    A fleet is reported as one client, whose id has * for the number of each.

    `records_acked` holds records of aborted transactions too. `producer_ids` counts the ids it was
    given: 0 for a consumer. None stands where the client does not tell: a Java client tells of
    no push. `pushes` counts PushTelemetry requests but the terminating one, which a client sends
    when its log is closed already; `client_instances` counts the ids brokers gave it (KIP-714).
    """

    principal: str
    client_id: str
    software: str
    records_acked: Mapping[str, int] = field(default_factory=dict)
    records_consumed: Mapping[str, int] = field(default_factory=dict)
    producer_ids: int = 0
    client_instances: int | None = None
    pushes: int | None = None
    throttled_responses: int | None = None
    transactions_committed: int | None = None
    transactions_aborted: int | None = None
    rack: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigCall:
    """One config or quota change that was asked for; `error_code` is the broker's, 0 for done."""

    entity_type: str
    entity_name: str
    config: str
    value: str | None
    error_code: int


@dataclass(frozen=True, slots=True)
class Move:
    """A throttled reassignment of a topic's one partition."""

    topic: str
    from_broker: int
    to_broker: int
    throttle_bytes_per_s: int
    size_bytes: int
    is_finished: bool


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """One run of the demo's traffic; times are epoch milliseconds of this machine."""

    cluster_id: str
    seed: int
    scale: float
    began_ms: int
    ended_ms: int
    topic_ids: Mapping[str, str]
    clients: tuple[ClientReport, ...]
    config_calls: tuple[ConfigCall, ...]
    move: Move | None

    def records_acked(self, topic: str) -> int:
        """Records of a topic that brokers acknowledged to any client."""
        return sum(client.records_acked.get(topic, 0) for client in self.clients)

    def producer_ids(self, principal: str) -> int:
        """Producer ids allocated to a principal."""
        return sum(c.producer_ids for c in self.clients if c.principal == principal)

    def as_json(self) -> dict[str, Any]:
        """As plain lists, dicts and numbers."""
        return asdict(self)
