"""A plan's client quotas as Jikkou resources (jikkou.io), for clusters whose quotas live in git.

Changes that a KafkaClientQuota of Jikkou cannot express are left out and counted: configs of
topics, brokers and client-metrics resources, removals, and quotas of newer KIPs.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from quotaflow.pipelines.feedback.configs.change import RENEW, Change, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.schemas.configs import CLIENT_ID, USER
from quotaflow.udfs.counted import counted

_API = "kafka.jikkou.io/v1beta2"
_LIMITS = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
}

# By default Jikkou takes a resource for all quotas of an entity, and removes those set elsewhere.
_KEEPS_OTHERS = (
    "# jikkou apply --options limits-delete-orphans=false: without it Jikkou removes what quotas\n"
    "# these users and clients have besides"
)


def documents(plan: Plan) -> Iterator[str]:
    """One YAML document per entity, with comments on how to apply them and what was left out."""
    by_entity: dict[ConfigEntity, list[Change]] = {}
    for change in plan.changes:
        if change.operation.name != RENEW:
            by_entity.setdefault(change.entity, []).append(change)
    limits = {entity: _limits(entity, changes) for entity, changes in by_entity.items()}
    if any(limits.values()):
        yield _KEEPS_OTHERS
    for entity, configs in limits.items():
        if configs:
            type_, named = _named(entity)
            spec = {"type": type_, "entity": named, "configs": configs}
            document = {"apiVersion": _API, "kind": "KafkaClientQuota", "spec": spec}
            yield "---\n" + yaml.safe_dump(document, sort_keys=False).rstrip()
    left_out = sum(map(len, by_entity.values())) - sum(map(len, limits.values()))
    if left_out:
        yield f"# left out, as Jikkou has no resource for it: {counted(left_out, 'change')}"


def _limits(entity: ConfigEntity, changes: list[Change]) -> dict[str, float]:
    has_resource = entity.entity_type in {USER, CLIENT_ID} and not (
        entity.entity_name is None and entity.client_id is not None
    )
    return {
        _LIMITS[change.desired.config_key]: float(change.value)
        for change in changes
        if has_resource and change.value is not None and change.desired.config_key in _LIMITS
    }


def _named(entity: ConfigEntity) -> tuple[str, dict[str, Any]]:
    if entity.client_id is not None:
        return "USER_CLIENT", {"user": entity.entity_name, "clientId": entity.client_id}
    type_, part = ("USER", "user") if entity.entity_type == USER else ("CLIENT", "clientId")
    if entity.entity_name is None:
        return f"{type_}S_DEFAULT", {}
    return type_, {part: entity.entity_name}
