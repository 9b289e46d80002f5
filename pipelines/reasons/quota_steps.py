"""The codes of a quota's steps: why a plan tightens it, gives it back, or leaves it for now."""

from collections.abc import Callable
from typing import Any

from quotaflow.udfs.rules import quota_step
from quotaflow.udfs.rules.quota_step import StepLimits

SHARED_QUOTA = "shared_quota"
LOWERS = "lowers_quota"
ABOVE_QUOTA = "above_quota"
NOT_RESTORABLE = "prior_not_restorable"

Words = Callable[[Any, StepLimits], str]


def why(code: str, row: Any, limits: StepLimits) -> str:
    """The sentence of a code. `row` has the columns of desired_configs that it reads."""
    return WORDS[code](row, limits)


def _start(row: Any, _: StepLimits) -> str:
    return (
        f"first value: the p99 of its usage at its busiest broker, {_amount(row.usage_p99)}, "
        "or the least allowed"
    )


def _step_down(_: Any, limits: StepLimits) -> str:
    return f"a step of at most {limits.max_tighten_share:.0%} down"


def _step_without_gain(_: Any, limits: StepLimits) -> str:
    return (
        f"the last step did not help (its gain is under {limits.min_gain:g}), so it is given back: "
        "a person must see to this offender"
    )


def _no_gain_in_all(_: Any, limits: StepLimits) -> str:
    return (
        f"the quota does not help (its gain is under {limits.min_gain:g}), so all of it is given "
        "back: a person must see to this offender"
    )


def _well(_: Any, limits: StepLimits) -> str:
    return f"no offence for two dead times ({_seconds(limits)} s): one step is given back"


def _effect_pending(_: Any, limits: StepLimits) -> str:
    return (
        f"the effect of the last write does not show yet: the next decision is two dead times "
        f"({_seconds(limits)} s) after it"
    )


def _history_too_short(row: Any, limits: StepLimits) -> str:
    return (
        f"history_too_short: its usage is known for {_amount(row.history_s or 0)} s, and "
        f"plan.min_history_s is {limits.min_history.total_seconds():.0f}"
    )


def _paused(_: Any, limits: StepLimits) -> str:
    return (
        "a step without gain was given back: no further one for "
        f"{limits.pause.total_seconds():.0f} s (plan.no_gain_pause_s); a person must see to this "
        "offender"
    )


def _at_floor(row: Any, limits: StepLimits) -> str:
    return (
        "the quota that applies is at its floor: "
        f"{limits.median_share:g} of the median usage ({_amount(row.usage_median)}), or "
        f"{limits.min_value:g}"
    )


def _lowers(row: Any, _: StepLimits) -> str:
    return f"{row.config_value} is less than the quota that applies, and only a step may lower it"


def _above(row: Any, _: StepLimits) -> str:
    return f"{row.config_value} is more than the quota that applies, and this row raises none"


def _not_restorable(row: Any, _: StepLimits) -> str:
    return (
        f"its value now, {row.prior_value}, is out of the bounds of what may be written, so it "
        "could not be given back"
    )


def _shared(row: Any, _: StepLimits) -> str:
    return (
        f"clients share a quota of level {row.quota_level}: one of its own would take it out of "
        "that, and all together get more"
    )


WORDS: dict[str, Words] = {
    quota_step.START: _start,
    quota_step.STEP_DOWN: _step_down,
    quota_step.STEP_WITHOUT_GAIN: _step_without_gain,
    quota_step.NO_GAIN_IN_ALL: _no_gain_in_all,
    quota_step.WELL: _well,
    quota_step.EFFECT_PENDING: _effect_pending,
    quota_step.HISTORY_TOO_SHORT: _history_too_short,
    quota_step.USAGE_UNKNOWN: lambda *_: "no row has its usage at its busiest broker",
    quota_step.OFFENCE_UNKNOWN: lambda *_: "how much it offends is not known",
    quota_step.PAUSED_WITHOUT_GAIN: _paused,
    quota_step.AT_FLOOR: _at_floor,
    quota_step.WELL_TOO_SHORT: lambda *_: "the last offence is less than two dead times ago",
    quota_step.NOTHING_TO_GIVE_BACK: lambda *_: "no step is left to give back",
    SHARED_QUOTA: _shared,
    LOWERS: _lowers,
    ABOVE_QUOTA: _above,
    NOT_RESTORABLE: _not_restorable,
}
"""The sentence of each code."""


def _amount(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.15g}"


def _seconds(limits: StepLimits) -> str:
    return f"{limits.settle_time.total_seconds():.0f}"
