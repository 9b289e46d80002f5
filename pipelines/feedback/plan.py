"""Desired configs -> the changes an operator may make, with reason, evidence and command line.

Pure: what is desired, the time and the bounds are arguments; the same ones give the same plan.
Nothing is applied here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from quotaflow.pipelines.feedback.kafka_configs import Connection, command
from quotaflow.schemas.configs import CLIENT_METRICS, CONFIGS, TOPIC, USER
from quotaflow.udfs.rules import lease

# kafka-configs reads an empty name, and some tools this one, as the default of all users.
_NAMES_OF_DEFAULTS = ("", "<default>")


@dataclass(frozen=True, slots=True)
class Desired:
    """One row of the view desired_configs; without a config_value the config is to be removed.

    `prior_value` is what the last snapshot found, or the request log told since; null where there
    was none or nobody told. `withheld` says why it may not be planned; `valid_s` how long it is
    to hold, after which the prior value comes back.
    """

    cluster_id: str
    entity_type: str
    entity_name: str
    config_key: str
    config_value: str | None
    prior_value: str | None
    reason: str
    evidence_table: str
    evidence_key: str
    since: datetime
    priority: int
    withheld: str | None = None
    valid_s: int | None = None


Entity = tuple[Desired, ...]
"""The rows of one entity: they are planned together or not at all."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a plan may not touch: principals by the name Kafka prints, and what has not settled.

    `refused`: configs this cluster was asked to take and refused, with its answer. `harm` says what
    an entity's rows would do to a live client, None where nothing.
    """

    excluded_principals: frozenset[str] = frozenset()
    settle: timedelta = timedelta(0)
    cluster_id: str | None = None
    max_subscriptions: int = 50
    refused: Mapping[str, str] = field(default_factory=dict)
    harm: Callable[[Entity], str | None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Change:
    """A config to write, why, and the command that would, with all of its entity.

    `note` says what may refuse it.
    """

    desired: Desired
    value: str | None
    command: str
    note: str


@dataclass(frozen=True, slots=True)
class Held:
    """A desired config that is not planned, and why."""

    desired: Desired
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes by priority, then by entity; and what was held back."""

    changes: tuple[Change, ...]
    held: tuple[Held, ...]


def plan(desired: Iterable[Desired], now: datetime, bounds: Bounds, connection: Connection) -> Plan:
    """Sort desired configs into changes and what is held back; what is so already is neither."""
    in_order = sorted(desired, key=_order)
    allowed = (row for row in in_order if row.withheld is None)
    entities = [tuple(rows) for _, rows in groupby(allowed, key=_entity)]
    asked = sorted(filter(_is_subscription, entities), key=lambda entity: entity[0].since)
    too_many = {_entity(entity[0]) for entity in asked[bounds.max_subscriptions :]}
    changes = list[Change]()
    held = [Held(row, row.withheld) for row in in_order if row.withheld is not None]
    for entity in entities:
        why = _why_held(entity, now, bounds)
        if why is None and _entity(entity[0]) in too_many:
            why = f"plan.max_subscriptions is {bounds.max_subscriptions}, and older ones come first"
        if why is None:
            changes += _changes(entity, connection)
        else:
            held += [Held(row, why) for row in entity]
    return Plan(tuple(changes), tuple(held))


def _is_subscription(entity: Entity) -> bool:
    return any(r.entity_type == CLIENT_METRICS and r.config_value is not None for r in entity)


def _changes(entity: Entity, connection: Connection) -> list[Change]:
    wanted = {row.config_key: _canonical(row) for row in entity}
    rows = [row for row in entity if wanted[row.config_key] != row.prior_value]
    if not rows:
        return []
    values = {row.config_key: wanted[row.config_key] for row in rows}
    line = command(entity[0].entity_type, entity[0].entity_name, values, connection)
    return [Change(row, values[row.config_key], line, _note(row)) for row in rows]


def _canonical(row: Desired) -> str | None:
    if row.config_value is None:
        return None
    return CONFIGS[row.config_key].canonical(row.config_value)


def _note(row: Desired) -> str:
    config = CONFIGS[row.config_key]
    if config.entity_type == TOPIC and row.config_value is not None:
        return f"valid while the list is {row.prior_value}: the tool sets lists whole"
    if not config.refusal:
        return ""
    return (
        f"stock Kafka refuses {config.key} (broker: {config.refusal}; its kafka-configs.sh "
        "does not take it either): this line works only with brokers and tools of KIP-936"
    )


def _why_held(entity: Entity, now: datetime, bounds: Bounds) -> str | None:
    whys: Sequence[str | None] = [_why_row_held(row, now, bounds) for row in entity]
    return next((why for why in whys if why), None) or bounds.harm(entity)


def _why_row_held(row: Desired, now: datetime, bounds: Bounds) -> str | None:
    if row.entity_name in _NAMES_OF_DEFAULTS:
        return (
            f"the name {row.entity_name!r} would be read as the default of all {row.entity_type}s"
        )
    if row.entity_type == USER and f"User:{row.entity_name}" in bounds.excluded_principals:
        return "excluded: plan.excluded_principals, or this pipeline's own login"
    if bounds.cluster_id is not None and row.cluster_id != bounds.cluster_id:
        return f"seen in cluster {row.cluster_id}, and conf means {bounds.cluster_id}"
    until_s = lease.until_s(row.entity_name) if row.entity_type == CLIENT_METRICS else None
    if until_s is not None and now.timestamp() < until_s:
        return f"its lease runs for another {until_s - int(now.timestamp())} s"
    if row.since > now - bounds.settle:
        settle_s = bounds.settle // timedelta(seconds=1)
        return f"seen since {row.since:%H:%M:%S} UTC only: rows settle for {settle_s} s"
    return _value_problem(row, bounds.refused)


def _value_problem(row: Desired, refused: Mapping[str, str]) -> str | None:
    config = CONFIGS.get(row.config_key)
    if config is None or config.entity_type != row.entity_type:
        return f"{row.config_key} of a {row.entity_type} is no config that may be written"
    if row.config_key in refused:
        return f"this cluster refuses {row.config_key}: {refused[row.config_key]}"
    try:
        _canonical(row)
    except ValueError as error:
        return str(error)
    return None


def _entity(row: Desired) -> tuple[int | str, ...]:
    return (row.priority, row.cluster_id, row.entity_type, row.entity_name)


def _order(row: Desired) -> tuple[int | str, ...]:
    return (*_entity(row), row.config_key)
