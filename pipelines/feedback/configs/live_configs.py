"""Dynamic configs of the cluster: read, validated, written.

Client quotas have requests of their own (KIP-546); all others use DESCRIBE_CONFIGS and
INCREMENTAL_ALTER_CONFIGS (KIP-339). Each entity has a request of its own, so a refusal of one stops
no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafka import errors as kafka_errors
from kafka.admin import AlterConfigOp, ConfigResourceType, ConfigSourceType
from kafka.protocol import admin as requests

from quotaflow.pipelines.feedback.configs import cluster_facts
from quotaflow.pipelines.feedback.configs.change import DELETE, Change
from quotaflow.pipelines.feedback.configs.cluster_facts import ClusterFacts
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.kafka import rights
from quotaflow.pipelines.kafka.cluster_state import (
    UNKNOWN_TOPIC,
    ClusterState,
    UnansweredError,
    error_name,
)
from quotaflow.schemas.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_ID,
    CLIENT_METRICS,
    CONFIGS,
    QUOTA_ENTITIES,
    TOPIC,
)

_KINDS = {
    TOPIC: ConfigResourceType.TOPIC,
    BROKER: ConfigResourceType.BROKER,
    CLIENT_METRICS: ConfigResourceType.CLIENT_METRICS,
    BROKER_LOGGER: ConfigResourceType.BROKER_LOGGER,
}
_OWN_SOURCES = {
    TOPIC: ConfigSourceType.DYNAMIC_TOPIC_CONFIG,
    BROKER: ConfigSourceType.DYNAMIC_BROKER_CONFIG,
    CLIENT_METRICS: ConfigSourceType.DYNAMIC_CLIENT_METRICS_CONFIG,
    # Every logger has this source, even one with an inherited level: a broker does not say which.
    BROKER_LOGGER: ConfigSourceType.DYNAMIC_BROKER_LOGGER_CONFIG,
}
_EXACTLY, _DEFAULT = 0, 1
# A broker hands a write to the controller. With these it says that the controller did not answer it
# in time, so the write may yet be made.
_UNSURE = (kafka_errors.RequestTimedOutError.errno, kafka_errors.NetworkExceptionError.errno)


@dataclass(frozen=True, slots=True)
class LiveConfigs:
    """Reads and writes configs of a cluster. Raises UnansweredError if a broker is silent."""

    state: ClusterState

    def read(self, entity: ConfigEntity) -> dict[str, str]:
        """The configs set on the entity itself, by key: neither defaults nor static configs.

        Empty for a deleted topic and for a broker that is no longer registered.
        """
        if not entity.can_be:
            raise UnansweredError(f"no cluster can have a {entity.entity_type} of that name")
        return _quotas(self.state, entity) if _has_quotas(entity) else _own(self.state, entity)

    def refusal(self, changes: Sequence[Change]) -> str | None:
        """Why the cluster would refuse these changes of one entity. Nothing is written."""
        return self._alter(changes, validate_only=True)

    def write(self, changes: Sequence[Change]) -> str | None:
        """Make these changes of one entity, all or none. Returns the broker's refusal, if any.

        After an UnansweredError it is unknown whether they were made.
        """
        return self._alter(changes, validate_only=False)

    def facts(self) -> ClusterFacts:
        """The addresses of brokers, and the defaults of quotas."""
        return cluster_facts.read(self.state)

    def _alter(self, changes: Sequence[Change], *, validate_only: bool) -> str | None:
        entity = changes[0].entity
        if _has_quotas(entity):
            request = _quota_request(entity, changes, validate_only)
            answer = self.state.ask(request).entries[0]
        else:
            request = _config_request(entity, changes, validate_only)
            answer = self.state.ask(request, _node(entity)).responses[0]
        if not answer.error_code:
            return None
        if answer.error_code in _UNSURE:
            raise UnansweredError(error_name(answer.error_code) or "")
        refusal = f"{answer.error_code} {answer.error_message}"
        return refusal + rights.hint("apply", refusal)


def _own(state: ClusterState, entity: ConfigEntity) -> dict[str, str]:
    kind, name = _KINDS[entity.entity_type].value, entity.entity_name or ""
    own = _OWN_SOURCES[entity.entity_type].value
    (answer,) = state.configs(kind, [name], _node(entity))
    if _is_deleted(state, entity, answer.reason):
        return {}
    answer.check()
    return {c.name: c.value or "" for c in answer.content if c.config_source == own}


def _is_deleted(state: ClusterState, entity: ConfigEntity, reason: str | None) -> bool:
    """Whether the entity does not exist; one that does not answer now may still exist.

    Before Kafka 4.0 a cluster does not report which brokers are registered but down.
    """
    if reason is None or _node(entity) is None:
        return entity.entity_type == TOPIC and reason == str(UNKNOWN_TOPIC)
    brokers = state.brokers()
    is_known = all(broker["is_fenced"] is not None for broker in brokers)
    return is_known and _node(entity) not in {broker["broker_id"] for broker in brokers}


def _quotas(state: ClusterState, entity: ConfigEntity) -> dict[str, str]:
    kind = requests.DescribeClientQuotasRequest
    components = [
        kind.ComponentData(
            entity_type=part, match_type=_DEFAULT if name is None else _EXACTLY, match=name
        )
        for part, name in _parts(entity)
    ]
    entries = state.ask(kind(components=components, strict=True)).entries or ()
    return {
        value.key: CONFIGS[value.key].plain(str(value.value))
        if value.key in CONFIGS
        else str(value.value)
        for entry in entries
        for value in entry.values
    }


def _quota_request(entity: ConfigEntity, changes: Sequence[Change], validate_only: bool) -> Any:
    kind = requests.AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=[
            kind.EntryData.EntityData(entity_type=part, entity_name=name)
            for part, name in _parts(entity)
        ],
        ops=[
            kind.EntryData.OpData(
                key=change.desired.config_key,
                value=float(change.operation.operand or 0),
                remove=change.operation.name == DELETE,
            )
            for change in changes
        ],
    )
    return kind(entries=[entry], validate_only=validate_only)


def _config_request(entity: ConfigEntity, changes: Sequence[Change], validate_only: bool) -> Any:
    configs = [
        (c.desired.config_key, AlterConfigOp[c.operation.name].value, c.operation.operand)
        for c in changes
    ]
    resource = (_KINDS[entity.entity_type].value, entity.entity_name or "", configs)
    return requests.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )


def _parts(entity: ConfigEntity) -> list[tuple[str, str | None]]:
    """The parts of a quota's entity as Kafka names them; a default part has no name."""
    parts = [(entity.entity_type, entity.entity_name)]
    return parts if entity.client_id is None else [*parts, (CLIENT_ID, entity.client_id)]


def _has_quotas(entity: ConfigEntity) -> bool:
    return entity.entity_type in QUOTA_ENTITIES


def _node(entity: ConfigEntity) -> int | None:
    """The broker to send requests to: only it knows and checks its own configs and levels."""
    is_one = entity.entity_type in {BROKER, BROKER_LOGGER} and entity.entity_name
    return int(entity.entity_name or 0) if is_one else None
