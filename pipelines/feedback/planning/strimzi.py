"""A plan's user quotas as fragments of KafkaUser resources, for clusters that Strimzi manages.

The User Operator writes a KafkaUser's quotas again at each reconciliation, so a quota that anybody
else sets does not last: the resource is to be changed instead (KafkaUserQuotas in Strimzi's API
reference). Percentages are integers there.
"""

import math
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


def fragments(changes: Iterable[Change]) -> Iterator[str]:
    """One YAML document per user, and a comment for each quota that a KafkaUser cannot have."""
    by_name: dict[str, dict[str, int]] = {}
    notes: list[str] = []
    for change in changes:
        entity, key = change.entity, change.desired.config_key
        field = None if entity.client_id is not None else _FIELDS.get(key)
        if field is None or entity.entity_name is None:
            notes.append(f"# no KafkaUser can have this: {yaml.safe_dump(f'{entity}: {key}')}")
        elif change.value is None:
            notes.append(f"# remove {field}: {yaml.safe_dump(entity.entity_name)}")
        else:
            quotas = by_name.setdefault(entity.entity_name.removeprefix(_OF_CERTIFICATE), {})
            # Rounded up: a quota of 0 stops a user.
            quotas[field] = math.ceil(float(change.value))
    for name, quotas in by_name.items():
        document = {
            "apiVersion": "kafka.strimzi.io/v1beta2",
            "kind": "KafkaUser",
            "metadata": {"name": name},
            "spec": {"quotas": quotas},
        }
        yield "---\n" + yaml.safe_dump(document, sort_keys=False).rstrip()
    yield from (note.splitlines()[0] for note in notes)
