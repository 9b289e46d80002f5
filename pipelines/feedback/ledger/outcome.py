"""The outcome of a change, or its preview, by what the cluster has: done, moved, still to make.

Pure. In a list only our own entries count: others may add and remove theirs beside them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from quotaflow.pipelines.feedback.configs.change import (
    APPEND,
    RENEW,
    SUBTRACT,
    Change,
    is_same_value,
    list_entries,
    shown,
)
from quotaflow.pipelines.feedback.ledger.ledger import DONE, MOVED, STARTED, UNDONE, Record
from quotaflow.schemas.configs import BROKER_LOGGER

OPEN = "open"
"""Not a step: it is unknown whether it was written, and the next run resolves it."""
ACCEPTED = "accepted"
"""Not a step: brokers would accept it."""
ALREADY_SET = "already_set"
"""Not a step: the config has the desired value already."""
MAY_LAND_FOR = timedelta(minutes=2)
"""How long after its run a write without an answer may still be made: a broker retries a request
to the controller for 60 s (BrokerServer, "forwarding"), and then waits for the answer. A broker
sets the levels of its loggers itself, before it answers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a change ended: a step of the ledger, OPEN, ACCEPTED or ALREADY_SET, and why."""

    change: Change
    step: str
    detail: str | None = None


def previewed(change: Change, actual: Mapping[str, str]) -> Outcome:
    """BEGUN if a change can be made on what its entity has, else why not."""
    key, prior = change.desired.config_key, change.desired.prior_value
    now = actual.get(key)
    if change.operation.name in {APPEND, SUBTRACT}:
        # Others may add and remove entries beside ours.
        has = set(list_entries(now)) & set(list_entries(change.operation.operand))
        if now == "*":
            return Outcome(change, MOVED, "it is * now: all replicas")
        if change.operation.name == APPEND and not has:
            return Outcome(change, STARTED)
        if change.operation.name == SUBTRACT and has == set(list_entries(change.operation.operand)):
            return Outcome(change, STARTED)
    elif is_same_value(key, now, prior):
        return Outcome(change, STARTED)
    if is_made(change, actual):
        return Outcome(change, ALREADY_SET)
    return Outcome(change, MOVED, f"it is {shown(now)} now, and was planned on {shown(prior)}")


def is_made(change: Change, actual: Mapping[str, str]) -> bool:
    """Whether its entity has the value after the change."""
    key = change.desired.config_key
    return _has_value(
        key, change.operation.name, change.operation.operand, change.value, actual.get(key)
    )


def _has_value(
    key: str, operation: str, operand: str | None, value: str | None, now: str | None
) -> bool:
    if operation == APPEND:
        return set(list_entries(operand)) <= set(list_entries(now))
    if operation == SUBTRACT:
        return not set(list_entries(operand)) & set(list_entries(now))
    return is_same_value(key, now, value)


def resolve(
    record: Record, now: str | None, since: timedelta, later: Iterable[Record]
) -> tuple[str, str] | None:
    """The end of an open record by the current value; None: the write may still be made.

    `since`: time since its run; `later`: our later writes to the config, open ones too.
    """
    if record.operation == RENEW:
        return UNDONE, "its lease was not renewed"
    is_now_as_recorded = is_as_recorded(record, now)
    is_of_later = any(is_as_recorded(write, now) and _covers(write, record) for write in later)
    if is_now_as_recorded and not is_of_later:
        return DONE, "it was written"
    if since < MAY_LAND_FOR and record.entity.entity_type != BROKER_LOGGER:
        return None
    if is_now_as_recorded:
        return UNDONE, "a later write of ours made it so"
    if is_same_value(record.config_key, now, record.prior_value):
        return UNDONE, "it was not written"
    return MOVED, f"it is {shown(now)} now, set by another login"


def _covers(later: Record, record: Record) -> bool:
    """Whether a later write alone would give the record's value: each adds its own list entries."""
    if record.operation not in {APPEND, SUBTRACT}:
        return True
    is_alike = later.operation == record.operation
    return is_alike and set(list_entries(record.operand)) <= set(list_entries(later.operand))


def is_as_recorded(record: Record, now: str | None) -> bool:
    """Whether a config has the value that a record of its write names."""
    write = record.operation, record.operand, record.config_value
    return _has_value(record.config_key, *write, now)
