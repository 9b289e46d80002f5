"""A plan's user quotas as fragments of KafkaUser resources, for clusters that Strimzi manages.

The User Operator writes a KafkaUser's quotas again at each reconciliation, so a quota that anybody
else sets does not last: the resource is to be changed instead (KafkaUserQuotas in Strimzi's API
reference). All but the rate of mutations are 32-bit integers there.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator

import yaml

from quotaflow.pipelines.feedback.configs.change import RENEW, BlockedChange, Change
from quotaflow.schemas.configs import USER

_FIELDS = {
    "producer_byte_rate": "producerByteRate",
    "consumer_byte_rate": "consumerByteRate",
    "request_percentage": "requestPercentage",
    "controller_mutation_rate": "controllerMutationRate",
}
_DECIMAL = "controllerMutationRate"
_MOST = 2**31 - 1
# RFC 1123, as names of resources are.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MOST_CHARACTERS = 253
# The operator names a user with a certificate by this common name.
_OF_CERTIFICATE = "CN="


def is_concerned(change: Change) -> bool:
    """Whether a change writes a quota of a user."""
    return change.entity.entity_type == USER and change.operation.name != RENEW


def blocked(changes: Iterable[Change], operator: str) -> Iterator[BlockedChange]:
    """Changes that are left to the User Operator, each with the reason."""
    of_user = f"{operator} writes quotas of users: change the KafkaUser, as the plan prints it"
    of_default = f"{operator} writes quotas of users, and no KafkaUser is the default of all users"
    return (
        BlockedChange(change.desired, of_default if change.entity.is_default else of_user)
        for change in changes
    )


def fragments(changes: Iterable[Change], api: str = "v1") -> Iterator[str]:
    """A merge patch per KafkaUser, as YAML below the command that makes it.

    Then a comment for each quota that a KafkaUser cannot have. A merge patch leaves the rest of the
    resource as it is: its authentication, its rules and its other quotas. `api` is the version of
    Strimzi's API: v1 since 0.49, and the only one since 1.0.0.
    """
    patches: dict[str, dict[str, float | None]] = {}
    notes: list[str] = []
    for change in changes:
        entity, key = change.entity, change.desired.config_key
        field = None if entity.client_id is not None else _FIELDS.get(key)
        name = (entity.entity_name or "").removeprefix(_OF_CERTIFICATE)
        if field is None or entity.entity_name is None:
            notes.append(f"# no KafkaUser can have this: {_line(f'{entity}: {key}')}")
        elif not _NAME.fullmatch(name) or len(name) > _MOST_CHARACTERS:
            notes.append(
                f"# no KafkaUser has this name, one may have it as spec.userName: {_line(name)}: "
                f"{field}: {_value(field, change.value)}"
            )
        elif (value := _value(field, change.value)) is not None and value > _most(field):
            notes.append(
                f"# a KafkaUser has {field} in an int, {_MOST} at most, not {value}: {_line(name)}"
            )
        else:
            patches.setdefault(name, {})[field] = value
    for name, quotas in patches.items():
        yield _patch(name, quotas, api)
    yield from notes


def _patch(name: str, quotas: dict[str, float | None], api: str) -> str:
    spec = {"spec": {"quotas": quotas}}
    resource = {"apiVersion": f"kafka.strimzi.io/{api}", "kind": "KafkaUser"}
    document = resource | {"metadata": {"name": name}} | spec
    removed = ", ".join(field for field, value in quotas.items() if value is None)
    return "\n".join(
        [
            "---",
            f"# kubectl patch kafkausers.{api}.kafka.strimzi.io {name} --type merge "
            f"--patch '{json.dumps(spec)}'",
            *([f"# null: remove {removed}"] if removed else []),
            yaml.safe_dump(document, sort_keys=False).rstrip(),
        ]
    )


def _value(field: str, value: str | None) -> float | None:
    if value is None:
        return None
    # Rounded up: a quota of 0 stops a user.
    return float(value) if field == _DECIMAL else math.ceil(float(value))


def _most(field: str) -> float:
    return math.inf if field == _DECIMAL else _MOST


def _line(text: str) -> str:
    """A text as YAML in one line: an entity's name is what a client chose."""
    return yaml.safe_dump(text, width=math.inf).splitlines()[0]
