"""The topic of leases of conf's cluster, and the command that creates it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from quotaflow.pipelines.config import KafkaSection
from quotaflow.pipelines.errors import FeedbackError
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, quoted, tool
from quotaflow.pipelines.feedback.ledger.leases import Item
from quotaflow.pipelines.feedback.ledger.signed_journal import LeaseTopic
from quotaflow.pipelines.kafka import compacted_topic

REPLICAS, MIN_IN_SYNC = 3, 2
CONFIGS = {
    "cleanup.policy": "compact",
    # Kafka compacts closed segments alone, and each command reads the topic whole.
    "segment.bytes": "16777216",
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": "1048588",
}


@dataclass(frozen=True, slots=True)
class MissingTopic:
    """A topic that does not exist: it has no leases, and takes none."""

    command: str

    def read(self) -> list[Item]:
        """No records."""
        return []

    def append(self, items: Sequence[Item]) -> NoReturn:  # noqa: ARG002  of the protocol
        """Raise FeedbackError with the command that creates the topic."""
        raise missing(self.command)


def missing(command: str) -> FeedbackError:
    """The error of a topic that does not exist."""
    return FeedbackError(
        "the topic of leases (feedback.lease_topic) does not exist, or this login may not see it: "
        f"nothing is written without it. Create it: {command}"
    )


@contextmanager
def opened(kafka: KafkaSection, name: str) -> Iterator[LeaseTopic]:
    """The topic of this name, or a MissingTopic. Raises KafkaError if it cannot be read."""
    with compacted_topic.opened(kafka.login, name) as topic:
        yield topic or MissingTopic(create_command(name, Connection.from_conf(kafka)))


def create_command(name: str, connection: Connection, replicas: int = REPLICAS) -> str:
    """The kafka-topics command line that creates the topic."""
    words = [*tool("kafka-topics.sh", connection), "--create", "--topic"]
    words += [quoted(name), "--partitions", "1"]
    words += ["--replication-factor", str(replicas)]
    durable = {"min.insync.replicas": str(min(MIN_IN_SYNC, replicas))}
    configs = CONFIGS | durable
    words += [word for pair in configs.items() for word in ("--config", "=".join(pair))]
    return " ".join(words)
