"""Guards: each says why one row may not be written, by the row, the policy and the ledger.

`write_problem` decides for apply and restore alike. Bounds of values are in schemas/configs.py.
Pure: time is an argument.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from quotaflow.pipelines.feedback.configs.change import Halt, is_same_value
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig, Group
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger
from quotaflow.pipelines.feedback.planning.blast_radius import BlastRadius
from quotaflow.pipelines.feedback.planning.preflight import NOBODY, Preflight
from quotaflow.pipelines.feedback.planning.trusted_bounds import TrustedBounds
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.config_values import NumberValue
from quotaflow.schemas.configs import (
    BROKER,
    CLIENT_METRICS,
    CONFIGS,
    IP,
    LOGGING_LEVELS,
    PRODUCER_IDS_RATE,
    REQUEST_LOGGER,
    TOPIC,
    USER,
)
from quotaflow.udfs.rules import lease
from quotaflow.udfs.rules.limit import REVERT, TIGHTEN, LimitBounds
from quotaflow.udfs.rules.pseudonym import is_pseudonym

REQUESTS, RESULTS, TELEMETRY, SNAPSHOT = "request log", "results", "telemetry", "last snapshot"
"""The inputs of a plan: their newest times are `inputs_at` of the policy."""

URGENT = 5
"""Priorities up to this one do not wait for a cooldown: replication falls behind, or clients
suffer, each second."""

ADVICE = 30
"""Priorities from this one on are advice on how entities fare under their configs: it waits until
a value that was written for another reason is restored."""

_AHEAD = timedelta(minutes=5)
"""How far the time of an input may be ahead: clocks differ a little, and a wrong one never ages."""
_MOVES = ("replication_traffic", "replication_throttles")
RESULT_TABLES = {
    "producer_id_offenders": ("producer_id_rates", "address_clients"),
    "default_quota_proposals": ("producer_id_rates", "address_clients"),
    "quota_advice": ("quota_usage",),
    "metric_alerts": ("metric_alert_events",),
    "replication_rate_advice": _MOVES,
    "throttle_checks": _MOVES,
}
"""Evidence -> the results that it is computed from: each has an age in `inputs_at`, too."""

_STANDS_ON = {
    "metric_alerts": (TELEMETRY, *RESULT_TABLES["metric_alerts"], SNAPSHOT),
    "current_configs": (SNAPSHOT,),
    "throttle_leftovers": (SNAPSHOT,),
}
# kafka-configs reads an empty name, and some tools this one, as the default of all users.
_NAMES_OF_DEFAULTS = (None, "", "<default>")
_WRITABLE_DEFAULT = (USER, None, None, PRODUCER_IDS_RATE.key)
"""Type, name, client id and key of the one default that a plan may write (KIP-936)."""
_ANY = "*"
_HYSTERESIS = 0.1
"""The share of a client quota by which another must differ to be written."""


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """What a plan or a restore must not change, and how much it may change.

    `excluded_principals`: as Kafka prints them. `protected`: others that no quota may slow down ->
    the code of protected_principals. `refused_keys`: configs that this cluster refused
    when a snapshot probed it, with its answer. `preflight` returns what is known of the live
    clients that an entity's rows subscribe. `inputs_at`: the newest time of request log, results,
    telemetry and snapshot, and of each of RESULT_TABLES; `max_input_ages`: how old those with a
    measured lag may be. `failed_checks`: table or view -> why a plan must not use it as evidence.
    `other_managers`: type of entity -> other programs that manage its configs. `holds`: configs
    that another login set last, with who and when. `blast_radius` is None where nothing bounds how
    much changes. With a `halt` a plan only restores. `user_operator` is the program that writes
    quotas of users from resources of its own.
    `limits`: how much a limit must help, and how long it lasts. `min_history`: how long usage must
    be known before a first quota; None: a first quota has no bound. `default_quotas`:
    producer_ids_rate of the default of all users may be written. `strangers`: limits of ours ->
    another login who uses the entity since. `trusted`: bounds that no table can move, or None.
    """

    excluded_principals: frozenset[str] = frozenset()
    protected: Mapping[str, str] = field(default_factory=dict)
    settle: timedelta = timedelta(0)
    cluster_id: str | None = None
    max_subscriptions: int = 50
    refused_keys: Mapping[str, str] = field(default_factory=dict)
    preflight: Callable[[Group], Preflight] = lambda _: NOBODY
    inputs_at: Mapping[str, datetime | None] = field(default_factory=dict)
    max_input_age: timedelta = timedelta.max
    max_input_ages: Mapping[str, timedelta] = field(default_factory=dict)
    failed_checks: Mapping[str, str] = field(default_factory=dict)
    other_managers: Mapping[str, str] = field(default_factory=dict)
    holds: Mapping[Key, str] = field(default_factory=dict)
    blast_radius: BlastRadius | None = None
    halt: Halt | None = None
    user_operator: str | None = None
    strimzi_api: str = "v1"
    lease_s: int = 3_600
    cooldown: timedelta = timedelta(0)
    max_step_factor: float = 2.0
    limits: LimitBounds = field(default_factory=LimitBounds)
    min_history: timedelta | None = None
    default_quotas: bool = False
    strangers: Mapping[Key, str] = field(default_factory=dict)
    trusted: TrustedBounds | None = None


@dataclass(frozen=True, slots=True)
class CurrentConfig:
    """A row's config now: its value, and the ledger of what this pipeline wrote."""

    value: str | None
    ledger: Ledger


def stale_evidence(row: DesiredConfig, now: datetime, bounds: PlanPolicy) -> str | None:
    """Why no row may rest on this evidence: an input is too old, or its age is unknown."""
    tables = RESULT_TABLES.get(row.evidence_table, (RESULTS,))
    # Where a table's own age is not known, that of its job counts.
    results = [name if name in bounds.inputs_at else RESULTS for name in tables]
    for name in _STANDS_ON.get(row.evidence_table, (REQUESTS, *results, SNAPSHOT)):
        why = _age_problem(name, now, bounds) if name in bounds.inputs_at else None
        if why is not None:
            return why
    return None


def _age_problem(name: str, now: datetime, bounds: PlanPolicy) -> str | None:
    newest = bounds.inputs_at[name]
    if newest is None:
        return f"the age of the {name} is not known: run quotaflow run and quotaflow snapshot"
    if newest - now > _AHEAD:
        return (
            f"the time of the {name} is {newest - now} ahead of the clock here: set both clocks by "
            "NTP, then run quotaflow run and quotaflow snapshot"
        )
    most = bounds.max_input_ages.get(name, bounds.max_input_age)
    if now - newest <= most:
        return None
    age, limit = (texts.duration(time / timedelta(milliseconds=1)) for time in (now - newest, most))
    return (
        f"the age of the {name} is {age} (plan.max_input_age_s: {limit}): run `quotaflow run` and "
        "`quotaflow snapshot` first"
    )


def blocked_reason(
    row: DesiredConfig, now: datetime, bounds: PlanPolicy, current: CurrentConfig
) -> str | None:
    """Why this row may not be planned; None if it may."""
    return (
        write_problem(row, bounds)
        or bounds.failed_checks.get(row.evidence_table)
        or _time_problem(row, now, bounds)
        or _list_problem(row, current)
        or _resource_problem(row, current)
        or _advice_problem(row, current)
    )


def write_problem(row: DesiredConfig, bounds: PlanPolicy) -> str | None:
    """Why no command may write a row's value; None if one may."""
    return (
        entity_problem(row, bounds)
        or bounds.holds.get(row.key)
        or _value_problem(row, bounds.refused_keys)
    )


def return_problem(row: DesiredConfig, bounds: PlanPolicy) -> str | None:
    """Why a row may not be written to end a lease; None if it may.

    Only the ledger has the baseline, and anyone who may write its table can forge it. So a value is
    restored only if a plan could write it, too. A row without a value removes our config: that
    lifts a limit, and needs no bound. The limit of all users can be lifted although conf allows it
    no more.
    """
    lifting = replace(bounds, default_quotas=bounds.default_quotas or _lifts(row))
    return write_problem(row, lifting) or _prior_problem(row, bounds)


def _lifts(row: DesiredConfig) -> bool:
    if row.config_value is None:
        return True
    numbers = _numbers(row, row.prior_value)
    return numbers is not None and numbers[1] >= numbers[0]


def _prior_problem(row: DesiredConfig, bounds: PlanPolicy) -> str | None:
    if row.config_value is None:
        return None
    if row.prior_value is None:
        return "nothing is set now, and what is removed has no lease that could end"
    if row.config_key == REQUEST_LOGGER.key and row.config_value in LOGGING_LEVELS:
        return f"a lease switches the request log off, and {row.config_value} switches it on"
    numbers = _numbers(row, row.prior_value)
    if numbers is None or CONFIGS[row.config_key].entity_type != USER:
        return None
    before, after = numbers
    least = before / bounds.max_step_factor
    if after >= least:
        return None
    return (
        f"{after:.15g} is less than {least:.15g}, the least that may follow {before:.15g} at once "
        f"(plan.max_step_factor is {bounds.max_step_factor:g})"
    )


def config_problem(entity: ConfigEntity, config_key: str) -> str | None:
    """Why no command may write this config of such an entity; None if one may."""
    config = CONFIGS.get(config_key)
    if config is None or not config.binds(entity.entity_type):
        return f"{config_key} of a {entity.entity_type} is no config that may be written"
    if not entity.can_be:
        kind = "an address in its usual form (2001:db8::1)"
        kind = kind if entity.entity_type == IP else "a number"
        return f"{entity.entity_name!r} is no {entity.entity_type}: its name is {kind}"
    return None


def entity_problem(row: DesiredConfig, bounds: PlanPolicy) -> str | None:
    """Why no config of this entity may be written; None if one may."""
    if row.entity_name in _NAMES_OF_DEFAULTS and (why := _default_problem(row, bounds)) is not None:
        return why
    hidden = next((n for n in (row.entity_name, row.entity_client_id) if is_pseudonym(n)), None)
    if hidden is not None:
        return f"{hidden} is a pseudonym, and Kafka knows nobody of that name: privacy.columns"
    if row.entity_type == USER and (why := _principal_problem(row, bounds)) is not None:
        return why
    if bounds.cluster_id is not None and row.cluster_id != bounds.cluster_id:
        return f"seen in cluster {row.cluster_id}, and conf means {bounds.cluster_id}"
    other = bounds.other_managers.get(row.entity_type)
    if other is not None:
        return (
            f"{other} manages configs of {row.entity_type}s too: plan.tolerated_managers, operators"
        )
    return None


def is_writable_default(entity: ConfigEntity, config_key: str) -> bool:
    """Whether this is the one default that a plan may write: producer_ids_rate of all users."""
    named = (entity.entity_type, entity.entity_name, entity.client_id, config_key)
    return named == _WRITABLE_DEFAULT


def _default_problem(row: DesiredConfig, bounds: PlanPolicy) -> str | None:
    if not is_writable_default(row.entity, row.config_key):
        return (
            f"the name {row.entity_name or ''!r} would be read as the default of all "
            f"{row.entity_type}s"
        )
    if bounds.default_quotas:
        return None
    return f"plan.default_quotas of conf is false: no plan limits all {row.entity_type}s at once"


def _principal_problem(row: DesiredConfig, bounds: PlanPolicy) -> str | None:
    if row.entity.is_default:  # its proposal compares the rate of each principal
        return None
    principal = f"User:{row.entity_name}"
    if principal in bounds.excluded_principals:
        return (
            "excluded: it is in plan.excluded_principals or ingest.shipper_principals, or is the "
            "login of quotaflow"
        )
    why_code = bounds.protected.get(principal)
    return why_code and f"no quota may slow it down: it is {why_code} (protected_principals)"


def _value_problem(row: DesiredConfig, refused: Mapping[str, str]) -> str | None:
    why = config_problem(row.entity, row.config_key)
    if why is not None:
        return why
    if row.config_key in refused:
        return f"this cluster refuses {row.config_key}: {refused[row.config_key]}"
    try:
        if row.config_value is not None:
            CONFIGS[row.config_key].canonical(row.config_value)
    except ValueError as error:
        return str(error)
    return None


def _time_problem(row: DesiredConfig, now: datetime, bounds: PlanPolicy) -> str | None:
    until_s = lease.until_s(row.entity_name or "") if row.entity_type == CLIENT_METRICS else None
    if until_s is not None and now.timestamp() < until_s:
        return f"its lease ends in {texts.duration((until_s - int(now.timestamp())) * 1e3)}"
    if row.since > now - bounds.settle:
        settle = texts.duration(bounds.settle / timedelta(milliseconds=1))
        seen = f"{row.since:%H:%M:%S} UTC"
        return f"it was first seen at {seen}: a plan waits {settle} for later rows"
    return None


def _list_problem(row: DesiredConfig, current: CurrentConfig) -> str | None:
    if CONFIGS[row.config_key].entity_type == TOPIC and current.value == _ANY:
        return "the list is * (all replicas), so no entry can be added or removed"
    return None


def _resource_problem(row: DesiredConfig, current: CurrentConfig) -> str | None:
    """Why a client-metrics resource that exists may not be changed: others chose the same name."""
    if row.entity_type != CLIENT_METRICS or current.value in {None, row.config_value}:
        return None
    is_temporary = lease.until_s(row.entity_name or "") is not None
    if is_temporary or any(entity == row.entity for entity, _ in current.ledger.owned):
        return None
    return (
        "another deployment or a person made it, not this one: if nobody needs it, remove it by "
        "hand"
    )


def _advice_problem(row: DesiredConfig, current: CurrentConfig) -> str | None:
    owned = current.ledger.owned.get((row.entity, row.config_key))
    if owned is None or row.priority < ADVICE or owned.record.evidence_table == row.evidence_table:
        return None
    return f"{owned.record.evidence_table} set the current value, and that is restored first"


def wait_reason(
    row: DesiredConfig, now: datetime, bounds: PlanPolicy, current: CurrentConfig
) -> str | None:
    """Why the current value stays for now although another is desired; None if it may change.

    Of rows that may not be planned only those come here that keep a current value of ours.
    """
    if row.direction in {TIGHTEN, REVERT}:  # their rule has waited already
        return None
    near = _is_near(row, current.value)
    return row.blocked_reason or near or _cooldown_reason(row, now, bounds, current)


def _cooldown_reason(
    row: DesiredConfig, now: datetime, bounds: PlanPolicy, current: CurrentConfig
) -> str | None:
    changed_at = current.ledger.changed_at(row.entity, row.config_key)
    if changed_at is None or row.priority <= URGENT or not _has_cooldown(row, current):
        return None
    left = bounds.cooldown - (now - changed_at)
    if left > timedelta(0):
        more = texts.duration(left / timedelta(milliseconds=1))
        return f"it was changed at {changed_at:%H:%M:%S} UTC, and stays for another {more}"
    return None


def _has_cooldown(row: DesiredConfig, current: CurrentConfig) -> bool:
    """Whether a change waits until the effect of the last one shows: true of quotas and rates."""
    is_limit = CONFIGS[row.config_key].entity_type in {USER, IP, BROKER}
    return is_limit and not is_same_value(row.config_key, row.config_value, current.value)


def _is_near(row: DesiredConfig, prior: str | None) -> str | None:
    """Why a number that is near the current one is not worth a change; None if it is."""
    numbers = _numbers(row, prior)
    if numbers is None or CONFIGS[row.config_key].entity_type != USER:
        return None
    before, after = numbers
    if after != before and abs(after - before) < _HYSTERESIS * before:
        return f"{after:g} is within {_HYSTERESIS:.0%} of {before:g}, the current value"
    return None


def step(row: DesiredConfig, prior: str | None, bounds: PlanPolicy) -> str | None:
    """The value of a client quota, at most one step from the current one.

    Rates of replication have steps of their own in replication_rate_advice, up to a floor.
    """
    numbers = _numbers(row, prior)
    if numbers is None or CONFIGS[row.config_key].entity_type != USER:
        return row.config_value
    before, after = numbers
    config = CONFIGS[row.config_key]
    assert isinstance(config.values, NumberValue)
    # A value past all that may be written (Long.MAX) means unlimited: no step from there is small.
    if not 0 < before <= config.values.max:
        return row.config_value
    bounded = min(max(after, before / bounds.max_step_factor), before * bounds.max_step_factor)
    return config.plain(str(int(bounded) if config.values.whole else bounded))


def _numbers(row: DesiredConfig, prior: str | None) -> tuple[float, float] | None:
    is_number = isinstance(CONFIGS[row.config_key].values, NumberValue)
    if not is_number or row.config_value is None or prior is None:
        return None
    try:
        return float(prior), float(row.config_value)
    except ValueError:
        return None
