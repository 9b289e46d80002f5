"""A plan's client quotas as Terraform resources: kafka_quota of the provider Mongey/kafka.

What a kafka_quota cannot express is a comment: defaults, quotas of a user with a client id,
removals, and configs of topics, brokers and client-metrics resources.
"""

import json
import re
from collections.abc import Iterator

from quotaflow.pipelines.feedback.configs.change import RENEW, Change, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.schemas.configs import CLIENT_ID, IP, USER

_TYPES = (USER, CLIENT_ID, IP)


def blocks(plan: Plan) -> Iterator[str]:
    """One resource per entity, and a comment for each change that none can have."""
    by_entity: dict[ConfigEntity, list[Change]] = {}
    for change in plan.changes:
        if change.operation.name != RENEW:
            by_entity.setdefault(change.entity, []).append(change)
    names: set[str] = set()
    for entity, changes in by_entity.items():
        able = entity.entity_type in _TYPES and entity.entity_name is not None
        able = able and entity.client_id is None
        quotas = {c.desired.config_key: c.value for c in changes if able and c.value is not None}
        if quotas:
            yield _resource(entity, quotas, names)
        for change in changes:
            key = change.desired.config_key
            if key not in quotas:
                yield f"# no kafka_quota can have this: {json.dumps(f'{entity}: {key}')}"


def _resource(entity: ConfigEntity, quotas: dict[str, str], names: set[str]) -> str:
    lines = [
        f'resource "kafka_quota" "{_name(entity, names)}" {{',
        f"  entity_name = {_text(str(entity.entity_name))}",
        f"  entity_type = {_text(entity.entity_type)}",
        "  config = {",
        *(f"    {_text(key)} = {_text(value)}" for key, value in quotas.items()),
        "  }",
        "}",
    ]
    return "\n".join(lines)


def _name(entity: ConfigEntity, names: set[str]) -> str:
    """A name of Terraform, of letters, digits and underscores, that no other resource has."""
    plain = re.sub(r"[^a-z0-9]+", "_", f"{entity.entity_type}_{entity.entity_name}".lower())
    name, n = plain, 1
    while name in names:
        n += 1
        name = f"{plain}_{n}"
    names.add(name)
    return name


def _text(value: str) -> str:
    # In a text of HCL these begin expressions.
    return json.dumps(value).replace("${", "$${").replace("%{", "%%{")
