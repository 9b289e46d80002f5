"""The next value of a client quota that limits an offender: one step down, or one step back.

The rule, for one quota of one entity:

1. It only tightens. No value is above the quota that applies, own or inherited, by anybody.
2. The first value is the p99 of the entity's usage at its busiest broker over a week, so it limits
   nothing at first (bumpless). With less history there is none. Where a fifth less than the quota
   that applies is below that p99, that is the first value instead.
3. No value is below the floor: a share of the median usage at the busiest broker, and an absolute
   minimum of the kind of quota.
4. A further step takes `max_tighten_share` off, and comes two dead times after the last write at
   the earliest. A dead time is how long a write takes to show in results.
5. The gain of a step is 1 - offence after / offence before. A step with less than `min_gain` (a
   shorter one with less than its part of that) is given back, and none follows for `pause`. If
   all steps together have less than `min_gain`, all are given back.
   The first value alone is not judged while a step follows, because it is to have no effect.
6. After two dead times without an offence the steps are given back one by one. The last one gives
   back the value from before the first.

Pure: time is an argument. Values and usage are in the unit of the quota, offences in any one unit.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

TIGHTEN, RAISE, GIVE_BACK = "tighten", "raise", "give_back"
"""Directions of a quota's change. GIVE_BACK: towards the value before ours."""

START = "start"
"""The first value: at the p99 of the busiest broker."""
STEP_DOWN = "step_down"
"""A further step."""
STEP_WITHOUT_GAIN = "step_without_gain"
"""The last step did not lower the offence: it is given back."""
NO_GAIN_IN_ALL = "no_gain_in_all"
"""All steps together did not: all are given back."""
WELL = "well"
"""No offence for two dead times: the last step is given back."""

EFFECT_PENDING = "effect_pending"
"""The last write is less than two dead times ago."""
HISTORY_TOO_SHORT = "history_too_short"
"""Usage is known for less than a week."""
USAGE_UNKNOWN = "usage_unknown"
"""There is no p99 or median of usage."""
OFFENCE_UNKNOWN = "offence_unknown"
"""The offence has no number, so no gain could be computed."""
PAUSED_WITHOUT_GAIN = "paused_without_gain"
"""A step without gain was given back less than `pause` ago."""
AT_FLOOR = "at_floor"
"""Any lower value is below the floor."""
WELL_TOO_SHORT = "well_too_short"
"""The last offence is less than two dead times ago."""
NOTHING_TO_GIVE_BACK = "nothing_to_give_back"
"""No step of ours is left."""

_CENTS, _ROUNDING = 100, 1e-6


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """Usage at the busiest broker over the last 7 days; `history_s`: seconds of known usage."""

    p99: float | None
    median: float | None
    history_s: float | None


@dataclass(frozen=True, slots=True)
class StepLimits:
    """How far and how often a quota changes (conf).

    `min_value`: the absolute minimum of this kind of quota; 0: none. `is_whole`: the quota has no
    fraction.
    """

    min_value: float = 0.0
    is_whole: bool = False
    median_share: float = 0.5
    max_tighten_share: float = 0.2
    min_gain: float = 0.1
    min_history: timedelta = timedelta(days=7)
    pause: timedelta = timedelta(days=1)
    dead_time: timedelta = timedelta(minutes=20)

    @property
    def settle_time(self) -> timedelta:
        """How long after a write the next decision is made."""
        return 2 * self.dead_time


@dataclass(frozen=True, slots=True)
class QuotaWrite:
    """One write of ours: the values before and after, null where not set, and its direction.

    `offence`: as measured when it was planned; null: there was none.
    """

    written_at: datetime
    before: float | None
    after: float | None
    offence: float | None
    direction: str = TIGHTEN


@dataclass(frozen=True, slots=True)
class OffenderQuota:
    """One quota of an offender. `applied`: the quota that applies, by anybody; null: none.

    `offence`: how much it offends now, measured after the last write. `writes`: our writes to this
    quota in time order, with the restores of leases that ended.
    """

    applied: float | None
    use: QuotaUse
    offence: float | None
    writes: Sequence[QuotaWrite] = ()


@dataclass(frozen=True, slots=True)
class QuotaAdvice:
    """What to do: TIGHTEN or GIVE_BACK to `value` (null: remove the quota), or None: nothing."""

    direction: str | None
    value: float | None
    reason: str


def floor(use: QuotaUse, limits: StepLimits) -> float:
    """The least value that the quota may have."""
    return max(limits.min_value, limits.median_share * (use.median or 0.0))


def steps(writes: Iterable[QuotaWrite]) -> list[QuotaWrite]:
    """The tightening writes that are not given back, oldest first. Writes are in time order."""
    left: list[QuotaWrite] = []
    for write in writes:
        if write.direction == TIGHTEN:
            left.append(write)
            continue
        while left and (write.after is None or _after(left[-1]) < write.after):
            left.pop()
    return left


def gain(step: QuotaWrite, offence: float) -> float:
    """How much less the offence is since a step: 0.2 is a fifth; negative: it is more."""
    return 1 - offence / step.offence if step.offence else 0.0


def tighten(quota: OffenderQuota, limits: StepLimits, now: datetime) -> QuotaAdvice:
    """The next change while the offence goes on."""
    use, offence, writes = quota.use, quota.offence, quota.writes
    if offence is None or not math.isfinite(offence):
        return QuotaAdvice(None, None, OFFENCE_UNKNOWN)
    if writes and now - writes[-1].written_at < limits.settle_time:
        return QuotaAdvice(None, None, EFFECT_PENDING)
    left = steps(writes)
    why_not = _wait_reason(use, writes, limits, now)
    step = (
        QuotaAdvice(None, None, why_not)
        if why_not
        else _step_down(quota.applied, use, left, limits)
    )
    # The first value alone has no effect to judge, but it must not stay without one either.
    is_start = len(left) == 1 and _is_start(left[0], limits)
    if not left or (is_start and step.direction == TIGHTEN):
        return step
    return _surrender(left, writes, offence, limits) or step


def give_back(
    well: timedelta, writes: Sequence[QuotaWrite], limits: StepLimits, now: datetime
) -> QuotaAdvice:
    """The next change while there is no offence; `well`: for how long there was none."""
    left = steps(writes)
    if not left:
        return QuotaAdvice(None, None, NOTHING_TO_GIVE_BACK)
    if now - writes[-1].written_at < limits.settle_time:
        return QuotaAdvice(None, None, EFFECT_PENDING)
    if well < limits.settle_time:
        return QuotaAdvice(None, None, WELL_TOO_SHORT)
    return QuotaAdvice(GIVE_BACK, left[-1].before, WELL)


def unknown_use(use: QuotaUse, limits: StepLimits) -> str | None:
    """Why too little is known of an entity's usage to limit it; None: enough is."""
    if use.history_s is None or use.history_s < limits.min_history.total_seconds():
        return HISTORY_TOO_SHORT
    return USAGE_UNKNOWN if use.p99 is None or use.median is None else None


def first_value(use: QuotaUse, limits: StepLimits) -> float | None:
    """The least first value of an entity without a quota; null where its usage is not known."""
    return None if use.p99 is None else _rounded(max(use.p99, floor(use, limits)), limits)


def _step_down(
    applied: float | None, use: QuotaUse, left: Sequence[QuotaWrite], limits: StepLimits
) -> QuotaAdvice:
    least = floor(use, limits)
    start = first_value(use, limits)
    assert start is not None
    if applied is None:
        return QuotaAdvice(TIGHTEN, start, START)
    lower = _rounded(applied * (1 - limits.max_tighten_share), limits)
    if not left and start < lower:
        return QuotaAdvice(TIGHTEN, start, START)
    value = max(lower, _rounded(least, limits))
    if value >= applied:
        return QuotaAdvice(None, None, AT_FLOOR)
    return QuotaAdvice(TIGHTEN, value, STEP_DOWN)


def _wait_reason(
    use: QuotaUse, writes: Sequence[QuotaWrite], limits: StepLimits, now: datetime
) -> str | None:
    if any(_is_surrender(write) and now - write.written_at < limits.pause for write in writes):
        return PAUSED_WITHOUT_GAIN
    return unknown_use(use, limits)


def _surrender(
    left: Sequence[QuotaWrite], writes: Sequence[QuotaWrite], offence: float, limits: StepLimits
) -> QuotaAdvice | None:
    """What to give back because it has no gain; None: nothing."""
    if gain(left[0], offence) < limits.min_gain:
        return QuotaAdvice(GIVE_BACK, left[0].before, NO_GAIN_IN_ALL)
    # After a give-back the last step was judged already.
    is_new = writes[-1] is left[-1]
    if is_new and gain(left[-1], offence) < _min_gain(left[-1], limits):
        return QuotaAdvice(GIVE_BACK, left[-1].before, STEP_WITHOUT_GAIN)
    return None


def _min_gain(step: QuotaWrite, limits: StepLimits) -> float:
    """The least gain of a step: a short one, as to the floor, is to have a part of it only."""
    if not step.before:
        return limits.min_gain
    taken = 1 - _after(step) / step.before
    return limits.min_gain * min(1.0, taken / limits.max_tighten_share)


def _is_start(step: QuotaWrite, limits: StepLimits) -> bool:
    """Whether a step set the first value at the p99: only that takes more than one step."""
    if step.before is None:
        return True
    return _after(step) < step.before * (1 - limits.max_tighten_share) - _ROUNDING


def _is_surrender(write: QuotaWrite) -> bool:
    return write.direction == GIVE_BACK and write.offence is not None


def _after(step: QuotaWrite) -> float:
    assert step.after is not None
    return step.after


def _rounded(value: float, limits: StepLimits) -> float:
    """Up, so that no step is longer than allowed and no value is below the floor."""
    if limits.is_whole:
        return float(math.ceil(value))
    return math.ceil(value * _CENTS - _ROUNDING) / _CENTS
