"""The Kafka cluster through kafka-python: its id, its topics and their offsets."""

import logging
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import OffsetSpec

from quotaflow.pipelines.config import kafka, secrets
from quotaflow.pipelines.errors import ConfigError, KafkaError
from quotaflow.pipelines.kafka import (
    sasl,
    service_credential,
    throttled_login,
    tls,
    transport_patch,
)

_TRIES = 3
_TIMEOUT_MS = 5_000
_HANDSHAKE, _UNTRUSTED = "Handshake failed:", "certificate verify failed"
_REFUSED: tuple[type[Exception], ...] = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.ClusterAuthorizationFailedError,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the cluster has it now. A topic made again under its name has another id."""

    name: str
    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster's id and the requested topics."""

    cluster_id: str
    topics: Mapping[str, Topic]


def describe(
    properties: Mapping[str, str], topics: list[str], pinned: str | None = None
) -> Cluster:
    """Cluster id and topics; topics that do not exist are absent from the answer.

    Raises KafkaError when no broker answers after a few tries, TLS or the login is refused, or the
    cluster is not the one `pinned` by its id.
    """
    cluster = _retried(properties, lambda admin: _describe(admin, topics))
    if pinned and pinned != cluster.cluster_id:
        raise KafkaError(
            f"this is cluster {cluster.cluster_id}, and conf's kafka.cluster_id is {pinned}"
        )
    return cluster


@contextmanager
def client(properties: Mapping[str, str], **others: Any) -> Iterator[KafkaAdminClient]:
    """An admin client for Kafka client properties as Java takes them, `others` as kafka-python.

    It waits while brokers throttle its login.
    """
    transport_patch.patch()
    admin = KafkaAdminClient(**options(properties) | others)
    throttled_login.wait_while_throttled(admin)
    try:
        yield admin
    finally:
        admin.close()


def log_bounds(properties: Mapping[str, str], topic: str) -> dict[int, range]:
    """The offset range of each partition's log; empty if a leader does not answer now."""
    try:
        with client(properties) as admin:
            (description,) = admin.describe_topics([topic])
            partitions = [
                TopicPartition(topic, one["partition_index"]) for one in description["partitions"]
            ]
            begins = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
            ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    except kafka_errors.KafkaError:
        return {}
    return {one.partition: range(begins[one].offset, ends[one].offset) for one in partitions}


def offset_at(properties: Mapping[str, str], topic: str, partition: int, time_ms: int) -> int:
    """The first offset with a record of this time or later, else the end of the log."""
    one = TopicPartition(topic, partition)
    with client(properties) as admin:
        offset: int = admin.list_partition_offsets({one: time_ms})[one].offset
        end: int = admin.list_partition_offsets({one: OffsetSpec.LATEST})[one].offset
    return offset if offset >= 0 else end


def options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Java's client properties as kafka-python takes them, secrets looked up.

    Raises ConfigError for properties that kafka-python has no counterpart for.
    """
    rest = {key: text for key, text in properties.items() if key != kafka.SERVICE_CREDENTIAL}
    credential = properties.get(kafka.SERVICE_CREDENTIAL)
    resolved = secrets.resolve(rest) | ({"security.protocol": "SASL_SSL"} if credential else {})
    if "bootstrap.servers" not in resolved:
        raise ConfigError(
            "kafka.properties.bootstrap.servers is not set: write host:port,host:port"
        )
    for problem in kafka.problems(rest if credential else resolved):
        raise ConfigError(f"kafka.properties: {problem}")
    protocol = resolved.get("security.protocol", "PLAINTEXT").upper()
    taken: dict[str, Any] = {
        "bootstrap_servers": [
            part.strip() for part in resolved["bootstrap.servers"].split(",") if part.strip()
        ],
        "security_protocol": protocol,
        "client_id": "quotaflow-admin",
        "bootstrap_timeout_ms": _TIMEOUT_MS,
        "request_timeout_ms": 6 * _TIMEOUT_MS,
    }
    if credential:
        taken |= service_credential.options(credential, taken["bootstrap_servers"])
    elif protocol.startswith("SASL"):
        taken |= sasl.options(resolved)
    if protocol.endswith("SSL"):
        taken["ssl_context"] = tls.context(resolved)
    return taken


def _describe(admin: KafkaAdminClient, topics: list[str]) -> Cluster:
    descriptions = admin.describe_topics(topics) if topics else []
    existing = {
        topic["name"]: Topic(topic["name"], printed(topic["topic_id"]), len(topic["partitions"]))
        for topic in descriptions
        if topic["error_code"] == 0
    }
    return Cluster(admin.describe_cluster()["cluster_id"], existing)


def printed(topic_id: uuid.UUID | str) -> str:
    """A Uuid as Kafka prints it: url-safe base64 without padding."""
    value = topic_id if isinstance(topic_id, uuid.UUID) else uuid.UUID(topic_id)
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def _retried(properties: Mapping[str, str], ask: Callable[[KafkaAdminClient], Cluster]) -> Cluster:
    servers = properties.get("bootstrap.servers", "")
    tries = 0
    while True:
        tries += 1
        with _refusals() as refusals:
            try:
                with client(properties) as admin:
                    return ask(admin)
            except kafka_errors.KafkaError as error:
                refusal = next(iter(refusals), error)
        if isinstance(refusal, _REFUSED):
            raise KafkaError(f"{servers} refused the login: {refusal}")
        if _is_handshake(refusal):
            raise KafkaError(_handshake_problem(servers, refusal))
        if tries == _TRIES:
            protocol = properties.get("security.protocol", "PLAINTEXT, as none is set")
            raise KafkaError(
                f"no broker of {servers} answered in {_TRIES} tries ({refusal}): is it up, "
                f"and kafka.properties right? The security.protocol was {protocol}"
            )
        time.sleep(2 ** (tries - 1))


def _is_refusal(error: object) -> TypeGuard[Exception]:
    return isinstance(error, _REFUSED)


def _is_handshake(error: object) -> TypeGuard[Exception]:
    """Whether TLS failed: a broker that is away now fails otherwise."""
    is_connection = isinstance(error, kafka_errors.KafkaConnectionError)
    return is_connection and _HANDSHAKE in str(error)


def _handshake_problem(servers: str, error: Exception) -> str:
    why = str(error).partition(_HANDSHAKE)[2].strip()
    if _UNTRUSTED in why:
        what = why.partition(f"{_UNTRUSTED}: ")[2].partition(" (_ssl")[0] or why
        return (
            f"this machine does not trust the certificate of {servers} ({what}): name its CA by "
            "ssl.truststore.type and ssl.truststore.location in kafka.properties"
        )
    return (
        f"no TLS with {servers} ({why}): is its listener one of TLS, and does it take the "
        "certificate of kafka.properties?"
    )


@contextmanager
def _refusals() -> Iterator[list[Exception]]:
    """Refused logins within the block: kafka-python only logs them, and then reports a timeout."""
    seen: list[Exception] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            arguments = record.args if isinstance(record.args, tuple) else ()
            seen.extend(each for each in arguments if _is_refusal(each) or _is_handshake(each))

    logger, listener = logging.getLogger("kafka"), Listener()
    logger.addHandler(listener)
    try:
        yield seen
    finally:
        logger.removeHandler(listener)
