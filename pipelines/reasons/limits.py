"""The codes of limits and quotas: why a plan sets, lowers or gives back one, or leaves it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from quotaflow.udfs.rules import limit
from quotaflow.udfs.rules.limit import LimitBounds

LOWERS = "lowers_quota"
ABOVE_QUOTA = "above_quota"
NOT_RESTORABLE = "prior_not_restorable"
USAGE_UNKNOWN = "usage_unknown"

Words = Callable[[Any, LimitBounds], str]


def why(code: str, row: Any, bounds: LimitBounds) -> str:
    """The sentence of a code. `row` has the columns of desired_configs that it reads."""
    return WORDS[code](row, bounds)


def short_history(row: Any, least: timedelta) -> str:
    """Why a user with too little known usage gets no first quota."""
    return (
        f"history_too_short: its usage is known for {_amount(row.history_s or 0)} s, and "
        f"plan.min_history_s is {_seconds(least)}"
    )


def _without_gain(what: str) -> Words:
    return lambda _, bounds: (
        f"{what} did not help: the offence fell by less than {bounds.min_gain:.0%}, so it is given "
        "back: a person must see to this offender"
    )


def _effect_pending(_: Any, bounds: LimitBounds) -> str:
    return (
        "the effect of the last write does not show yet: the next decision comes "
        f"{_seconds(bounds.settle)} s after it"
    )


def _paused(_: Any, bounds: LimitBounds) -> str:
    return (
        "a limit without effect was given back: none follows for "
        f"{_seconds(bounds.pause)} s (plan.no_gain_pause_s); a person must see to this offender"
    )


def _lowers(row: Any, _: LimitBounds) -> str:
    return f"{row.config_value} is less than the quota that applies, and this row limits nobody"


def _above(row: Any, _: LimitBounds) -> str:
    return f"{row.config_value} is more than the quota that applies, and this row raises none"


def _not_restorable(row: Any, _: LimitBounds) -> str:
    return (
        f"its value now, {row.prior_value}, is out of the bounds of what may be written, so it "
        "could not be given back"
    )


WORDS: dict[str, Words] = {
    limit.FIRST: lambda *_: "a limit to what the quota of producer ids allows",
    limit.STEP_DOWN: lambda *_: "the limit helps and the offence goes on: a step down",
    limit.STEP_WITHOUT_GAIN: _without_gain("the last step of the limit"),
    limit.NO_GAIN: _without_gain("the limit"),
    limit.EFFECT_PENDING: _effect_pending,
    limit.OFFENCE_UNKNOWN: lambda *_: "how much it offends is not known",
    limit.PAUSED: _paused,
    limit.AT_FLOOR: lambda *_: (
        "the value that applies is as low as a plan may set it, or a lower one had no gain"
    ),
    LOWERS: _lowers,
    ABOVE_QUOTA: _above,
    NOT_RESTORABLE: _not_restorable,
    USAGE_UNKNOWN: lambda *_: "no row has its usage at its busiest broker",
}
"""The sentence of each code."""


def _amount(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.15g}"


def _seconds(time: timedelta) -> str:
    return f"{time.total_seconds():.0f}"
