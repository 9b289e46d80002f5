"""What a plan writes to client quotas: the value of each row, and steps back once it is well.

udfs/rules/quota_step.py has the rule of rows that tighten. All other rows of such quotas only set
a first value that slows nobody down, raise a quota, or keep it. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from quotaflow.pipelines.feedback.change import is_same_value
from quotaflow.pipelines.feedback.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.guards import PlanPolicy
from quotaflow.pipelines.feedback.ledger import YIELDED, Ledger, OwnedConfig, Record
from quotaflow.pipelines.reasons import quota_steps
from quotaflow.schemas.config_values import NumberValue
from quotaflow.schemas.configs import CONFIGS, PRODUCER_IDS_RATE, USER
from quotaflow.udfs.rules import quota_step
from quotaflow.udfs.rules.quota_step import (
    GIVE_BACK,
    RAISE,
    TIGHTEN,
    OffenderQuota,
    QuotaAdvice,
    QuotaUse,
    QuotaWrite,
    StepLimits,
)

_USER_LEVELS, _CLIENT_LEVELS, _CLIENT_ID_LEVELS = {3, 6}, {1, 2, 4, 5}, {7, 8}
"""Levels of quotas that clients share as they share one of a user, of a user's client id, or of a
client id. To set another one takes clients out of what they share, so that all get more or less."""


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
    limits = _limits(row.config_key, bounds)
    if row.direction == GIVE_BACK or row.renew_only or limits is None:
        return _never_above(row)
    if row.direction != TIGHTEN and bounds.step_limits is None:
        return Decision(row)
    if row.key not in ledger.owned and not _can_come_back(row):
        return Decision(row, quota_steps.why(quota_steps.NOT_RESTORABLE, row, limits))
    if row.direction == TIGHTEN:
        return _tightened(row, now, limits, ledger)
    return _set_or_raised(row, limits)


def given_back(
    desired: Sequence[DesiredConfig], now: datetime, bounds: PlanPolicy, ledger: Ledger
) -> Iterator[DesiredConfig]:
    """Rows that give back one step of each quota of ours that no row tightens any more."""
    offending = {row.key for row in desired if row.direction == TIGHTEN}
    for key, records in ledger.quota_steps.items():
        owned, limits = ledger.owned.get(key), _limits(key[1], bounds)
        if owned is None or limits is None or key in offending:
            continue
        advice = quota_step.give_back(bounds.evidence_window, _writes(records), limits, now)
        if advice.direction == GIVE_BACK:
            yield _step_back(_well_row(owned), advice, owned, limits)


def is_last_step(row: DesiredConfig, owned: OwnedConfig | None) -> bool:
    """Whether a row gives back the value from before our first write."""
    return owned is None or is_same_value(row.config_key, row.config_value, owned.prior_value)


def _tightened(row: DesiredConfig, now: datetime, limits: StepLimits, ledger: Ledger) -> Decision:
    owned = ledger.owned.get(row.key)
    if row.prior_value is None and _is_shared(row):
        return Decision(row, quota_steps.why(quota_steps.SHARED_QUOTA, row, limits))
    use = QuotaUse(row.usage_p99, row.usage_median, row.history_s)
    writes = _writes(ledger.quota_steps.get(row.key, ()))
    quota = OffenderQuota(_applied(row), use, row.observed, writes)
    advice = quota_step.tighten(quota, limits, now)
    if advice.direction is None:
        why = quota_steps.why(advice.reason, row, limits)
        return Decision(row, why, is_kept=owned is not None)
    if advice.direction == GIVE_BACK:
        assert owned is not None
        return Decision(_step_back(row, advice, owned, limits))
    words = quota_steps.why(advice.reason, row, limits)
    value = _text(row.config_key, advice.value)
    return Decision(replace(row, config_value=value, reason=f"{row.reason}; {words}"))


def _step_back(
    row: DesiredConfig, advice: QuotaAdvice, owned: OwnedConfig, limits: StepLimits
) -> DesiredConfig:
    value = _text(row.config_key, advice.value)
    if is_same_value(row.config_key, value, owned.prior_value):
        value = owned.prior_value  # in the form in which somebody else set it
    words = quota_steps.why(advice.reason, row, limits)
    return replace(
        row,
        config_value=value,
        direction=GIVE_BACK,
        reason=f"{words}; it was written because {row.reason}",
    )


def _well_row(owned: OwnedConfig) -> DesiredConfig:
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
        priority=_GIVE_BACK_PRIORITY,
    )


def _set_or_raised(row: DesiredConfig, limits: StepLimits) -> Decision:
    """A row that is for its entity's good: it must not lower anything."""
    value, applied = _number(row.config_value), _applied(row)
    if value is None:
        return Decision(row)
    if applied is None:
        return _first(row, value, limits)
    if value < applied:
        return Decision(row, quota_steps.why(quota_steps.LOWERS, row, limits))
    if value > applied and row.direction != RAISE:
        return Decision(row, quota_steps.why(quota_steps.ABOVE_QUOTA, row, limits))
    return Decision(row)


def _first(row: DesiredConfig, value: float, limits: StepLimits) -> Decision:
    use = QuotaUse(row.usage_p99, row.usage_median, row.history_s)
    why_not = quota_step.unknown_use(use, limits)
    least = quota_step.first_value(use, limits)
    if why_not is not None or least is None:
        code = why_not or quota_step.USAGE_UNKNOWN
        return Decision(row, quota_steps.why(code, row, limits))
    if value >= least:
        return Decision(row)
    return Decision(replace(row, config_value=_text(row.config_key, least)))


def _never_above(row: DesiredConfig) -> Decision:
    """A row of another kind; if it limits, not above the quota that applies."""
    is_limit = row.direction == TIGHTEN or row.config_key == PRODUCER_IDS_RATE.key
    if not is_limit or row.direction == GIVE_BACK:
        return Decision(row)
    value, applied = _number(row.config_value), _applied(row)
    if value is None or applied is None or value <= applied:
        return Decision(row)
    if not _can_come_back(row):
        # What is set is below what may be written: nothing tightens it, and nothing sets it again.
        return Decision(row, quota_steps.why(quota_steps.NOT_RESTORABLE, row, StepLimits()))
    return Decision(replace(row, config_value=_text(row.config_key, applied)))


def _limits(config_key: str, bounds: PlanPolicy) -> StepLimits | None:
    """The limits of a key; None for a config that does not go by steps."""
    values = CONFIGS[config_key].values if config_key in CONFIGS else None
    if not isinstance(values, NumberValue) or values.floor is None:
        return None
    if CONFIGS[config_key].entity_type != USER:
        return None
    limits = bounds.step_limits or StepLimits()
    return replace(limits, min_value=values.floor, is_whole=values.whole)


def _can_come_back(row: DesiredConfig) -> bool:
    """Whether a restore may set the value from before ours, such as not Long.MAX."""
    try:
        if row.prior_value is not None:
            CONFIGS[row.config_key].canonical(row.prior_value)
    except ValueError:
        return False
    return True


def _is_shared(row: DesiredConfig) -> bool:
    levels = _USER_LEVELS if row.entity_client_id is None else _CLIENT_LEVELS
    levels = levels if row.entity_type == USER else _CLIENT_ID_LEVELS
    return row.quota_level is not None and row.quota_level not in levels


def _applied(row: DesiredConfig) -> float | None:
    """The quota that applies: its own, else the inherited one; None: unlimited."""
    own = _number(row.prior_value)
    applied = row.quota_in_force if own is None else own
    values = CONFIGS[row.config_key].values
    # Past what may be written is "no limit", such as Long.MAX.
    is_limit = applied is not None and isinstance(values, NumberValue) and applied <= values.max
    return applied if is_limit else None


def _writes(records: Iterable[Record]) -> list[QuotaWrite]:
    return [
        QuotaWrite(
            record.event_time,
            _number(record.prior_value),
            None if record.step == YIELDED else _number(record.config_value),
            record.observed,
            TIGHTEN if record.direction == TIGHTEN and record.step != YIELDED else GIVE_BACK,
        )
        for record in records
    ]


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def _text(config_key: str, value: float | None) -> str | None:
    return None if value is None else CONFIGS[config_key].plain(repr(value))


_GIVE_BACK_PRIORITY = 10
