"""What the demo's clients really did, by their own counts: tests compare tables with it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

JAVA = "apache-kafka-java"
LIBRDKAFKA = "librdkafka"
RAW = "unknown"
"""What brokers log for a client that did not name its software."""


@dataclass(frozen=True, slots=True)
class ClientReport:
    """One client id of one principal. Counts are by topic where Kafka counts by topic.

    A fleet is reported as one client, whose id has * for the number of each.

    `records_acked` includes records of aborted transactions. `producer_ids` counts the ids that it
    got: 0 for a consumer. None: the client does not report it, as a Java client reports no push.
    `pushes` counts PushTelemetry requests but those that a client sends while it closes, as the
    terminating one: its log is closed then; `client_instances` counts the ids that brokers gave it
    (KIP-714).
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
    """One requested config or quota change; `error_code` is the broker's, 0 for success."""

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
class Reads:
    """What brokers answered to the reader of traffic_reads.py, by what was wrong."""

    leader: int
    follower: int
    answers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """One run of the demo's traffic; times are epoch milliseconds of this machine.

    `push_errors` are what brokers answered to the pushes of raw_pushes.py, by client id.
    """

    cluster_id: str
    seed: int
    scale: float
    began_ms: int
    ended_ms: int
    topic_ids: Mapping[str, str]
    clients: tuple[ClientReport, ...]
    config_calls: tuple[ConfigCall, ...]
    move: Move | None
    reads: Reads
    push_errors: Mapping[str, int]

    def records_acked(self, topic: str) -> int:
        """Records of a topic that brokers acknowledged to any client."""
        return sum(client.records_acked.get(topic, 0) for client in self.clients)

    def producer_ids(self, principal: str) -> int:
        """Producer ids allocated to a principal."""
        return sum(c.producer_ids for c in self.clients if c.principal == principal)

    def as_json(self) -> dict[str, Any]:
        """As plain lists, dicts and numbers."""
        return asdict(self)
