"""Commands of Kafka's tools that prepare a cluster: its topics, and the rights of each login."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.connect.cluster_discovery import Discovery
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, quoted, tool
from quotaflow.pipelines.feedback.ledger import lease_topic
from quotaflow.schemas import acls
from quotaflow.schemas.acls import CLUSTER, Acl

_TWO_DAYS_MS = 172_800_000
_MESSAGE_BYTES = {"request_log_topic": 8_388_608, "receiver_topic": 4_194_304}
_REPLICAS = 1
_MIN_PARTITIONS = 3

LOGINS: Mapping[str, tuple[str, ...]] = {
    "SHIPPER": ("shipper",),
    "RECEIVER": ("receiver",),
    "PIPELINE": ("run", "snapshot"),
    "OPERATOR": ("apply", "capture", "troubleshoot"),
}
"""Variable of the script -> roles of its login. Roles that write to the cluster have their own."""


def topics(conf: Conf, discovery: Discovery, connection: Connection) -> Iterator[str]:
    """One command per topic of ours: creates it, or alters an existing one's configs."""
    for key, size in _MESSAGE_BYTES.items():
        name = getattr(conf.ingest, key)
        if name is None:
            continue
        configs = [f"max.message.bytes={size}", f"retention.ms={_TWO_DAYS_MS}"]
        if name in discovery.topics:
            words = [*tool("kafka-configs.sh", connection), "--alter", "--entity-type", "topics"]
            words += ["--entity-name", quoted(name), "--add-config", ",".join(configs)]
        else:
            partitions = max(_MIN_PARTITIONS, discovery.broker_count)
            words = [*tool("kafka-topics.sh", connection), "--create", "--topic", quoted(name)]
            words += ["--partitions", str(partitions), "--replication-factor", str(_REPLICAS)]
            words += [word for config in configs for word in ("--config", config)]
        yield " ".join(words)
    if conf.feedback.lease_topic not in discovery.topics:
        replicas = min(lease_topic.REPLICAS, discovery.broker_count)
        yield lease_topic.create_command(conf.feedback.lease_topic, connection, replicas)


def rights(login: str, conf: Conf, connection: Connection) -> Iterator[str]:
    """The commands that grant a login the rights of its roles, each right once, with the reason."""
    needed = {
        (acl.resource_type, acl.name, acl.operation): acl
        for role in reversed(LOGINS[login])
        for acl in acls.needed(role, topic_names(conf))
    }
    in_order = sorted(needed.values(), key=_resource)
    for _, group in groupby(in_order, key=_resource):
        yield from _granted(login, list(group), connection)


def _granted(login: str, group: list[Acl], connection: Connection) -> Iterator[str]:
    first = group[0]
    reasons = "; ".join(dict.fromkeys(acl.why for acl in group))
    yield (
        f"# optional; without it, quotaflow reports what it cannot do: {reasons}"
        if first.is_optional
        else f"# {reasons}"
    )
    command = _grant(f'"${login}"', group, connection)
    yield f"# {command}" if first.is_optional else command


def granted(principal: str, acls: list[Acl], connection: Connection) -> str:
    """The command that grants a principal these rights, all on one resource."""
    return _grant(quoted(principal), acls, connection)


def _grant(principal: str, group: list[Acl], connection: Connection) -> str:
    first = group[0]
    words = [*tool("kafka-acls.sh", connection), "--add", "--allow-principal", principal]
    words += [word for acl in group for word in ("--operation", acl.operation)]
    words += [f"--{first.resource_type}"]
    words += [] if first.resource_type == CLUSTER else [quoted(first.name)]
    words += ["--resource-pattern-type", "prefixed"] if first.is_prefix else []
    return " ".join(words)


def _resource(acl: Acl) -> tuple[str, str, bool, bool]:
    return acl.resource_type, acl.name, acl.is_prefix, acl.is_optional


def topic_names(conf: Conf) -> dict[str, str | None]:
    """The names of topics by acls.TOPIC_KEYS; None for one that is off."""
    ways_in = {key: getattr(conf.ingest, key) for key in acls.WAYS_IN}
    return ways_in | {acls.LEASES: conf.feedback.lease_topic}
