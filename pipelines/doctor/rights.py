"""Checks the rights of this login by role: brokers list them (KIP-430), so nothing is tried."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kafka import errors as kafka_errors
from kafka.protocol import admin as requests
from kafka.protocol.metadata import MetadataRequest

from quotaflow.pipelines.config.kafka import KafkaSection
from quotaflow.pipelines.connect.kafka_commands import granted, topic_names
from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, quoted
from quotaflow.pipelines.kafka.cluster_state import UnansweredError
from quotaflow.pipelines.kafka.oauth import ClientCredentials
from quotaflow.schemas import acls
from quotaflow.schemas.acls import Acl

_CODES = {acls.READ: 3, acls.WRITE: 4, acls.DESCRIBE: 8, acls.DESCRIBE_CONFIGS: 10}
_CODES |= {acls.ALTER_CONFIGS: 11}
# The pipeline needs the rights of these roles; the other roles may have a login of their own.
_STATES = {"run": BAD, "snapshot": WARNING}
_ROLES = ("run", "snapshot", "apply", "capture")
_NO_GROUP = "-source-doctor"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Codes of allowed operations on the cluster and by topic, and whether groups are visible.

    Hidden topics and nonexistent topics are missing from `topics`; the latter are in `absent`. None
    means that no broker answered.
    """

    cluster: frozenset[int] | None = None
    topics: dict[str, frozenset[int]] = field(default_factory=dict)
    group: bool | None = None
    absent: frozenset[str] = frozenset()

    def has(self, acl: Acl) -> bool | None:
        """Whether the login has a right; None if unknown."""
        code = _CODES[acl.operation]
        match acl.resource_type:
            case acls.CLUSTER:
                return None if self.cluster is None else code in self.cluster
            case acls.TOPIC if acl.name == acls.ALL:
                operations = list(self.topics.values())
                return all(code in each for each in operations) if operations else None
            case acls.TOPIC if acl.name in self.absent:
                return None
            case acls.TOPIC:
                return code in self.topics.get(acl.name, ())
            case acls.GROUP:
                return self.group
        return None


def own_principal(kafka: KafkaSection, subject: str | None = None) -> Finding:
    """Whether it is known as whom brokers take this login; `subject` is that of its token."""
    if kafka.own_principal:
        return Finding("principal", OK, kafka.own_principal)
    protocol = kafka.properties.get("security.protocol", "PLAINTEXT")
    has_key = any(key.startswith("ssl.keystore.") for key in kafka.properties)
    has_login = protocol.startswith("SASL") or kafka.service_credential
    if not has_login and not has_key:
        return Finding("principal", OK, "none: this login is User:ANONYMOUS, as that of others")
    remedy = (
        "write what brokers print into kafka.principal, or changes of this login count as those of "
        "others: docs/connect.md says how to look it up"
    )
    seen = "unknown: only brokers know it"
    if subject:
        seen += f"; by their default it is {quoted(f'User:{subject}')}, from the token's claim sub"
    return Finding("principal", WARNING, seen, remedy)


def findings(probe: Probe) -> Iterator[Finding]:
    """The rights that this login lacks, by role."""
    yield own_principal(probe.conf.kafka, _subject(probe))
    names = topic_names(probe.conf)
    allowed = _allowed(probe, {name for name in names.values() if name})
    principal = probe.conf.kafka.own_principal or "User:LOGIN"
    for role in _ROLES:
        yield of_role(role, acls.needed(role, names), allowed, _granting(probe, principal))


def _subject(probe: Probe) -> str | None:
    """The subject of the login's token; None for another login."""
    provider = probe.client.config.get("sasl_oauth_token_provider")
    return provider.subject if isinstance(provider, ClientCredentials) else None


def of_role(role: str, needed: tuple[Acl, ...], allowed: Allowed, how: "Granting") -> Finding:
    """The rights that a role lacks, and the commands that grant them."""
    missing = [acl for acl in needed if allowed.has(acl) is False]
    required = [acl for acl in missing if not acl.is_optional]
    unanswered = sum(allowed.has(acl) is None and not acl.is_optional for acl in needed)
    subject = f"rights to {role}"
    if not required:
        seen = f"all there{f', {unanswered} of them unknown' if unanswered else ''}"
        optional = "; ".join(f"{_right_text(acl)}, for {acl.why}" for acl in missing)
        seen += f"; optional, and missing: {optional}" if optional else ""
        return Finding(subject, OK, seen)
    seen = f"lacks {', '.join(map(_right_text, required))}"
    is_ours = role in _STATES
    remedy = ("" if is_ours else "only if this login is to do that: ") + how.commands(required)
    return Finding(subject, _STATES.get(role, OK), seen, remedy)


@dataclass(frozen=True, slots=True)
class Granting:
    """The principal that is granted rights, and how kafka-acls connects to the cluster."""

    principal: str
    connection: Connection

    def commands(self, missing: list[Acl]) -> str:
        """One command per resource."""
        by_resource: dict[tuple[str, str], list[Acl]] = {}
        for acl in missing:
            by_resource.setdefault((acl.resource_type, acl.name), []).append(acl)
        return " && ".join(
            granted(self.principal, group, self.connection) for group in by_resource.values()
        )


def _right_text(acl: Acl) -> str:
    return f"{acl.operation} on {acl.resource_type} {acl.name}"


def _granting(probe: Probe, principal: str) -> Granting:
    return Granting(principal, Connection.from_conf(probe.conf.kafka))


def _allowed(probe: Probe, names: set[str]) -> Allowed:
    topics = _topic_operations(probe)
    absent = names - topics.keys()
    absent -= probe.unauthorized_topics(absent)
    return Allowed(_cluster_operations(probe), topics, _sees_groups(probe), frozenset(absent))


def _cluster_operations(probe: Probe) -> frozenset[int] | None:
    request = requests.DescribeClusterRequest(include_cluster_authorized_operations=True)
    try:
        operations = probe.state.ask(request).authorized_operations
    except UnansweredError:
        return None
    return None if operations is None else frozenset(map(int, operations))


def _topic_operations(probe: Probe) -> dict[str, frozenset[int]]:
    """Allowed operations of every topic that this login sees."""
    request = MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )
    try:
        topics = probe.state.ask(request).topics
    except UnansweredError:
        return {}
    return {t.name: frozenset(map(int, t.authorized_operations or ())) for t in topics}


def _sees_groups(probe: Probe) -> bool | None:
    """Whether a group named as Spark names them may be described; any broker refuses if not.

    The request goes to no coordinator: looking for one would create Kafka's topic of offsets.
    """
    prefix = next(acl.name for acl in acls.ROLES["run"] if acl.resource_type == acls.GROUP)
    request = requests.DescribeGroupsRequest(groups=[prefix + _NO_GROUP])
    try:
        (group,) = probe.state.ask(request).groups
    except UnansweredError:
        return None
    return bool(group.error_code != kafka_errors.GroupAuthorizationFailedError.errno)
