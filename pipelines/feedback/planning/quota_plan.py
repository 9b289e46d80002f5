"""What a plan writes to quotas and limits: the value of each row, or why nothing is written.

udfs/rules/limit.py has the rule of rows that limit an offender, slow a move for clients, or raise
a quota. All other rows of quotas only set a first value that slows nobody down, or keep one. Pure.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from quotaflow.pipelines.feedback.configs.change import is_same_value
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import Ledger, OwnedConfig, Record
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.reasons import limits
from quotaflow.schemas.config_values import NumberValue
from quotaflow.schemas.configs import (
    CONFIGS,
    CONNECTION_CREATION_RATE,
    FOLLOWER_RATE,
    LEADER_RATE,
    PRODUCER_ID_EXPIRATION_MS,
    PRODUCER_IDS_RATE,
    USER,
)
from quotaflow.udfs.rules import limit
from quotaflow.udfs.rules.limit import (
    RAISE,
    REVERT,
    TIGHTEN,
    LimitAdvice,
    LimitWrite,
    OffenderLimit,
)

LIMITS = frozenset(
    {CONNECTION_CREATION_RATE.key, PRODUCER_IDS_RATE.key, PRODUCER_ID_EXPIRATION_MS.key}
)
"""The configs by which a plan limits an offender."""
RATES = frozenset({LEADER_RATE.key, FOLLOWER_RATE.key})
"""The configs by which a plan slows a move, so that clients wait less (KIP-73)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A row with the value to write, or why nothing is written now.

    `is_kept`: what we wrote before stays, and its lease goes on.
    """

    row: DesiredConfig
    why_not: str | None = None
    is_kept: bool = False


def decide(row: DesiredConfig, now: datetime, bounds: PlanPolicy, ledger: Ledger) -> Decision:
    """What to write for a row whose `prior_value` is the value of now."""
    if row.direction == REVERT or row.renew_only:
        return Decision(row)
    if row.config_key in RATES and row.observed is not None:
        # The dead time of limits is too long here: clients wait each second.
        bounds = replace(bounds, limits=replace(bounds.limits, settle=bounds.cooldown))
    if row.config_key in LIMITS or (row.config_key in RATES and row.observed is not None):
        return _judged(replace(row, direction=TIGHTEN), now, bounds, ledger)
    floor = _floor(row.config_key)
    if floor is None or (bounds.min_history is None and row.direction is None):
        return Decision(row)
    if row.key not in ledger.owned and not _can_come_back(row):
        return _not(row, limits.NOT_RESTORABLE, bounds)
    decision = _set_or_raised(row, bounds, floor)
    if decision.why_not is None and row.direction == RAISE and _applied(row) is not None:
        return _judged(row, now, bounds, ledger)
    return decision


def for_others(bounds: PlanPolicy, ledger: Ledger) -> Iterator[DesiredConfig]:
    """Rows that restore our limits of entities that another login uses since they were set."""
    for key, stranger in bounds.strangers.items():
        owned = ledger.owned.get(key)
        if owned is not None and key[1] in LIMITS:
            words = f"a limit must not slow down others at the address, such as {stranger}"
            yield _returned(_own_row(owned), None, owned, words)


def is_last_step(row: DesiredConfig, owned: OwnedConfig | None) -> bool:
    """Whether a row restores the value from before our first write."""
    return owned is None or is_same_value(row.config_key, row.config_value, owned.prior_value)


def _judged(row: DesiredConfig, now: datetime, bounds: PlanPolicy, ledger: Ledger) -> Decision:
    owned, first = ledger.owned.get(row.key), _number(row.config_value)
    if first is None:
        return Decision(row)
    if owned is None and not _can_come_back(row):
        return _not(row, limits.NOT_RESTORABLE, bounds)
    advice = _advice(row, first, now, bounds, ledger)
    words = limits.why(advice.reason, row, bounds.limits)
    row = replace(row, lease_s=int(advice.lease.total_seconds()))
    if advice.direction is None:
        is_kept = owned is not None and advice.reason != limit.OFFENCE_UNKNOWN
        return Decision(row, words, is_kept)
    if advice.direction == REVERT:
        assert owned is not None
        return Decision(_returned(row, advice.value, owned, words))
    value = _text(row.config_key, advice.value)
    if owned is not None and is_same_value(row.config_key, value, owned.value):
        return Decision(row, limits.why(limit.AT_FLOOR, row, bounds.limits), is_kept=True)
    return Decision(replace(row, config_value=value, reason=f"{row.reason}; {words}"))


def _advice(
    row: DesiredConfig, first: float, now: datetime, bounds: PlanPolicy, ledger: Ledger
) -> LimitAdvice:
    # What was written for another reason was never a step of this limit.
    writes = _writes(ledger.limits.get(row.key, ()))
    least = first if row.least_value is None else row.least_value
    values = first, least, _applied(row), row.observed
    is_ours, is_raise = row.key in ledger.owned, row.direction == RAISE
    lease = timedelta(seconds=bounds.lease_s)
    state = OffenderLimit(*values, lease, writes, is_ours=is_ours, is_raise=is_raise)
    return limit.advise(state, bounds.limits, now)


def _returned(
    row: DesiredConfig, value: float | None, owned: OwnedConfig, words: str
) -> DesiredConfig:
    text = _text(row.config_key, value)
    before = _number(owned.prior_value)
    if value is None or value == before:
        text = owned.prior_value  # in the form in which somebody else set it
    reason = f"{words}; it was written because {owned.record.reason}"
    # What somebody else set since is not ours to give back: the writer compares.
    ours = owned.value
    return replace(row, config_value=text, prior_value=ours, direction=REVERT, reason=reason)


def _own_row(owned: OwnedConfig) -> DesiredConfig:
    """The row that we wrote a config for. It has no offence: others are no sign of no gain."""
    entity, record = owned.record.entity, owned.record
    return DesiredConfig(
        cluster_id=entity.cluster_id,
        entity_type=entity.entity_type,
        entity_name=entity.entity_name,
        entity_client_id=entity.client_id,
        config_key=record.config_key,
        config_value=None,
        prior_value=owned.value,
        reason=record.reason,
        evidence_table=record.evidence_table,
        evidence_key=record.evidence_key,
        since=record.event_time,
        priority=0,
    )


def _not(row: DesiredConfig, code: str, bounds: PlanPolicy) -> Decision:
    return Decision(row, limits.why(code, row, bounds.limits))


def _set_or_raised(row: DesiredConfig, bounds: PlanPolicy, floor: float) -> Decision:
    """A row that is for its entity's good: it must not lower anything."""
    value, applied = _number(row.config_value), _applied(row)
    if value is None:
        return Decision(row)
    if applied is None:
        return _first(row, value, bounds, floor)
    if value < applied:
        return _not(row, limits.LOWERS, bounds)
    if value > applied and row.direction != RAISE:
        return _not(row, limits.ABOVE_QUOTA, bounds)
    return Decision(row)


def _first(row: DesiredConfig, value: float, bounds: PlanPolicy, floor: float) -> Decision:
    """A first quota, not below the p99 of its usage at its busiest broker."""
    least_history = bounds.min_history or timedelta(0)
    if row.history_s is None or row.history_s < least_history.total_seconds():
        return Decision(row, limits.short_history(row, least_history))
    if row.usage_p99 is None:
        return _not(row, limits.USAGE_UNKNOWN, bounds)
    least = max(row.usage_p99, floor)
    return Decision(
        row if value >= least else replace(row, config_value=_text(row.config_key, least))
    )


def _floor(config_key: str) -> float | None:
    """The least value that a plan sets of a client quota; None for other configs."""
    values = CONFIGS[config_key].values if config_key in CONFIGS else None
    if not isinstance(values, NumberValue) or CONFIGS[config_key].entity_type != USER:
        return None
    return values.floor


def _can_come_back(row: DesiredConfig) -> bool:
    """Whether a restore may set the value from before ours, such as not Long.MAX."""
    try:
        if row.prior_value is not None:
            CONFIGS[row.config_key].canonical(row.prior_value)
    except ValueError:
        return False
    return True


def _applied(row: DesiredConfig) -> float | None:
    """The quota that applies: its own, else the inherited one; None: unlimited."""
    own = _number(row.prior_value)
    applied = row.quota_in_force if own is None else own
    values = CONFIGS[row.config_key].values
    # Past what may be written is "no limit", such as Long.MAX.
    is_limit = applied is not None and isinstance(values, NumberValue) and applied <= values.max
    return applied if is_limit else None


def _writes(records: Iterable[Record]) -> list[LimitWrite]:
    return [
        LimitWrite(
            record.event_time,
            _number(record.prior_value),
            _number(record.config_value),
            record.observed,
            record.direction,
        )
        for record in records
    ]


def _number(value: str | None) -> float | None:
    try:
        number = math.nan if value is None else float(value)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _text(config_key: str, value: float | None) -> str | None:
    if value is None:
        return None
    values = CONFIGS[config_key].values
    is_whole = isinstance(values, NumberValue) and values.whole
    # Up: no value is below its floor.
    return CONFIGS[config_key].plain(repr(float(math.ceil(value)) if is_whole else value))
