"""How a change ended, or would, by what the cluster has: made, moved on, or still to be made.

Pure. Of a list only our own entries count: others' may come and go beside them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from quotaflow.pipelines.feedback.change import (
    APPEND,
    RENEW,
    SUBTRACT,
    Change,
    is_same_value,
    list_entries,
)
from quotaflow.pipelines.feedback.ledger import BEGUN, DONE, MOVED, UNDONE, Record
from quotaflow.schemas.configs import BROKER_LOGGER

OPEN = "open"
"""Not a step: whether it was written is not known, and the next run finds out."""
ACCEPTED = "accepted"
"""Not a step: brokers would take it."""
ALREADY_SET = "so_already"
"""Not a step: somebody else wrote what was wanted."""
MAY_LAND_FOR = timedelta(minutes=2)
"""How long after its run a write without an answer may still be made: a broker retries what it
hands to the controller for 60 s (BrokerServer, "forwarding"), and then waits for its answer. Levels
of its loggers it sets itself, before it tells them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a change ended: a step of the ledger, OPEN or SO_ALREADY, and why."""

    change: Change
    step: str
    detail: str | None = None


def previewed(change: Change, actual: Mapping[str, str]) -> Outcome:
    """Whether a change can be made on what its entity has: BEGUN, or why not."""
    key, prior = change.desired.config_key, change.desired.prior_value
    now = actual.get(key)
    if change.operation.name in {APPEND, SUBTRACT}:
        # Entries of others may come and go beside ours.
        has = set(list_entries(now)) & set(list_entries(change.operation.operand))
        if now == "*":
            return Outcome(change, MOVED, "it is * now: all replicas")
        if change.operation.name == APPEND and not has:
            return Outcome(change, BEGUN)
        if change.operation.name == SUBTRACT and has == set(list_entries(change.operation.operand)):
            return Outcome(change, BEGUN)
    elif is_same_value(key, now, prior):
        return Outcome(change, BEGUN)
    if is_made(change, actual):
        return Outcome(change, ALREADY_SET)
    return Outcome(change, MOVED, f"it is {_shown(now)} now, and was planned on {_shown(prior)}")


def is_made(change: Change, actual: Mapping[str, str]) -> bool:
    """Whether its entity has what it wants."""
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
    """How a record without an end ended, by what its config is now; None: it may yet be made.

    `since`: how long its run is over; `later`: our writes of its config after it, made or begun.
    """
    if record.operation == RENEW:
        return UNDONE, "its lease was not renewed"
    is_so_now = is_as_recorded(record, now)
    is_of_later = any(is_as_recorded(of, now) and _covers(of, record) for of in later)
    if is_so_now and not is_of_later:
        return DONE, "it was written"
    if since < MAY_LAND_FOR and record.entity.entity_type != BROKER_LOGGER:
        return None
    if is_so_now:
        return UNDONE, "a later write of ours made it so"
    if is_same_value(record.config_key, now, record.prior_value):
        return UNDONE, "it was not written"
    return MOVED, f"it is {_shown(now)} now, of somebody else"


def _covers(later: Record, record: Record) -> bool:
    """Whether a later write alone would make what a record wanted: of lists each adds its own."""
    if record.operation not in {APPEND, SUBTRACT}:
        return True
    is_alike = later.operation == record.operation
    return is_alike and set(list_entries(record.operand)) <= set(list_entries(later.operand))


def is_as_recorded(record: Record, now: str | None) -> bool:
    """Whether a config is as a record of its write wanted it."""
    of = record.operation, record.operand, record.config_value
    return _has_value(record.config_key, *of, now)


def _shown(value: str | None) -> str:
    return "not set" if value is None else value
