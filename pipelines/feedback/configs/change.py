"""A planned change: the smallest operation that gives a config its desired value, and its risk.

The id of a change is a hash of what it does, and the id of a plan also of the reasons it shows.
The same inputs give the same ids, so what a person approves is what is applied.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.schemas.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_ID,
    CLIENT_METRICS,
    CONFIGS,
    IP,
    PRODUCER_ID_EXPIRATION_MS,
    TOPIC,
    USER,
)
from quotaflow.udfs.rules.limit import REVERT

SET, DELETE, APPEND, SUBTRACT = "SET", "DELETE", "APPEND", "SUBTRACT"
"""Kafka's AlterConfigOp, of client quotas too."""
RENEW = "RENEW"
"""Writes nothing to the cluster: extends the lease of a value that is in place."""
APPLY, RESTORE = "apply", "restore"
"""The purpose of a change: set what results desire, or restore what was set before us."""

_ID_CHARS = 12
_PLAN_ID_CHARS = 20
"""80 bits: nobody makes another plan of an approved id."""
_RISKS = {
    USER: "slows or frees everything this user does, on every broker",
    CLIENT_ID: "slows or frees every client of this id, whoever it is",
    IP: "slows new connections of every client behind this address, at every broker",
    BROKER: "replication takes more or less of what clients of this broker share",
    TOPIC: "other replicas of this topic are throttled than before",
    CLIENT_METRICS: "the clients that the resource matches push more or fewer metrics",
    BROKER_LOGGER: "its broker writes a line per request: disk, and time of its threads",
}

_RISK_OF_DEFAULT = "slows every user without a quota of its own, on every broker"
_RISKS_OF_KEYS = {
    PRODUCER_ID_EXPIRATION_MS.key: (
        "a producer that pauses for longer gets a new id: what it retries late may be stored twice"
    ),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One of Kafka's alter operations, with its operand; null where it has none."""

    name: str
    operand: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A config to write, with its reason.

    `command` is the command line that writes all changes of the entity. `value` is the whole config
    after the write, null if it is removed. `lease_s` is how long the value holds unless it is
    renewed, null for ever. `note` says what an operator must know, such as who may refuse it.
    """

    desired: DesiredConfig
    value: str | None
    operation: Operation
    command: str
    note: str
    lease_s: int | None = None
    purpose: str = APPLY

    @property
    def entity(self) -> ConfigEntity:
        """The entity whose config it is."""
        return self.desired.entity

    @property
    def written(self) -> DesiredConfig:
        """The desired row with only the value that this change adds, for guards to check.

        What remains after DELETE or SUBTRACT is not ours.
        """
        brings = self.operation.name in {SET, APPEND}
        return replace(self.desired, config_value=self.operation.operand if brings else None)

    @property
    def change_id(self) -> str:
        """A hash of the write and its config, without the reason and the time."""
        row = self.desired
        parts = [*self.entity.order, row.config_key, row.prior_value, self.value]
        return _hash([*parts, self.operation.name, self.operation.operand, self.lease_s])

    @property
    def shown(self) -> list[object]:
        """What it does, and why: all that its row of the table plans shows."""
        row = self.desired
        why = [row.reason, row.evidence_table, row.evidence_key, row.priority, row.config_value]
        since = row.since.astimezone(UTC).isoformat()
        return [self.change_id, self.purpose, *why, since, self.risk, self.note, self.command]

    @property
    def risk(self) -> str:
        """The harm that it may do."""
        if self.operation.name == RENEW:
            return "none: what stands goes on"
        row = self.desired
        if row.entity_type == USER and row.entity.is_default:
            return _RISK_OF_DEFAULT
        return _RISKS_OF_KEYS.get(row.config_key) or _RISKS[row.entity_type]


@dataclass(frozen=True, slots=True)
class BlockedChange:
    """A desired config that is not planned, and why."""

    desired: DesiredConfig
    reason: str


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of plans whose effect on the cluster is watched: when it wrote, and to what.

    `principals`: whom it limits, by name or at an address.
    """

    run_id: str
    started_at: datetime
    ended_at: datetime
    entities: frozenset[ConfigEntity]
    principals: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Halt:
    """Why plans only restore: the cluster is worse since a run."""

    reason: str
    trial: Trial


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes by priority, then by entity; and the blocked ones.

    `fragments` are YAML documents for changes that another program must make. `unmade` says which
    inputs were never made, and what is not planned without them.
    """

    changes: tuple[Change, ...]
    blocked: tuple[BlockedChange, ...]
    halt: Halt | None = None
    fragments: tuple[str, ...] = ()
    unmade: tuple[str, ...] = ()

    @property
    def plan_id(self) -> str:
        """A hash of the changes and all that a person reads of them before an approval.

        Plans with another reason, risk, evidence or command have another id.
        """
        return _hash([change.shown for change in self.changes], _PLAN_ID_CHARS)


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """A plan as it was frozen, and the time of the freeze."""

    plan: Plan
    frozen_at: datetime


def purpose_of(row: DesiredConfig) -> str:
    """The purpose of a plan's row: a revert is a restore, in steps too."""
    return RESTORE if row.direction == REVERT else APPLY


def list_entries(value: str | None) -> list[str]:
    """The entries of a list."""
    return [part for part in (value or "").split(",") if part]


def operation(key: str, prior: str | None, value: str | None) -> Operation:
    """The smallest operation that turns `prior` into `value`.

    Entries are removed from a list before others are added: those follow with the next plan. The
    last entry is removed with DELETE: SUBTRACT would leave an empty list, which is a config too.
    """
    if value is None:
        return Operation(DELETE, None)
    config = CONFIGS[key]
    if not config.is_list or config.entity_type != TOPIC:
        return Operation(SET, value)
    before, after = list_entries(prior), list_entries(value)
    if removed := [part for part in before if part not in after]:
        return Operation(SUBTRACT, ",".join(removed))
    return Operation(APPEND, ",".join(part for part in after if part not in before))


def apply_operation(prior: str | None, operation: Operation) -> str | None:
    """The value of a config after the operation."""
    if operation.name == APPEND:
        before = list_entries(prior)
        return ",".join([*before, *(p for p in list_entries(operation.operand) if p not in before)])
    if operation.name == SUBTRACT:
        removed = list_entries(operation.operand)
        return ",".join(part for part in list_entries(prior) if part not in removed) or None
    return prior if operation.name == RENEW else operation.operand


def is_same_value(key: str, one: str | None, other: str | None) -> bool:
    """Whether two values of a config mean the same: 1000 equals 1000.0, and lists have no order."""
    if one is None or other is None:
        return one is other
    config = CONFIGS.get(key)
    if config is None:  # a record may name any key
        return one == other
    if config.is_list:
        return set(list_entries(one)) == set(list_entries(other))
    return config.plain(one) == config.plain(other)


def shown(value: str | None) -> str:
    """A value in a sentence."""
    return "not set" if value is None else value


def expires_at(change: Change, now: datetime) -> datetime | None:
    """When the lease ends if the change is written now."""
    return None if change.lease_s is None else now + timedelta(seconds=change.lease_s)


def _hash(parts: Sequence[object], chars: int = _ID_CHARS) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:chars]
