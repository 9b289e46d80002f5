"""The codes of limits and quotas: why a plan sets, steps or reverts one, or leaves it."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from quotaflow.schemas.configs import PRODUCER_ID_EXPIRATION_MS
from quotaflow.udfs.rules import limit
from quotaflow.udfs.rules.limit import RAISE, LimitBounds

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


def _subject(row: Any) -> tuple[str, str, str]:
    """What a plan set, what it must lower, and what is left to a person."""
    if row.direction == RAISE:
        return "the raise", "the throttled time per byte", "decide this quota"
    if row.config_key == PRODUCER_ID_EXPIRATION_MS.key:
        return "the shorter expiration", "the heap of producer ids", "find who takes the ids"
    if row.config_key.endswith(".replication.throttled.rate"):
        return "the lower rate", "the time that clients wait", "find what slows them"
    return "the limit", "the offence", "see to this offender"


def _first(row: Any, _: LimitBounds) -> str:
    if row.direction == RAISE:
        return "a raise, judged by how much its user moves and is throttled then"
    if row.config_key == PRODUCER_ID_EXPIRATION_MS.key:
        return "a shorter expiration, judged by the heap that producer ids take then"
    if row.config_key.endswith(".replication.throttled.rate"):
        return "a lower rate, judged by how long clients wait then"
    return "a limit to what the quota of producer ids allows"


def _step(row: Any, _: LimitBounds) -> str:
    _what, offence, _todo = _subject(row)
    direction = "up" if row.direction == RAISE else "down"
    return f"a step {direction}, because {offence} is less and still too much"


def _no_gain(row: Any, bounds: LimitBounds, last_step_of: str = "") -> str:
    what, offence, todo = _subject(row)
    return (
        f"{last_step_of}{what} did not help: {offence} fell by less than {bounds.min_gain:.0%}, so "
        f"it is reverted: a person must {todo}"
    )


def _effect_pending(_: Any, bounds: LimitBounds) -> str:
    return (
        "the effect of the last write does not show yet: the next decision comes "
        f"{_seconds(bounds.settle)} s after it"
    )


def _paused(row: Any, bounds: LimitBounds) -> str:
    what, _, todo = _subject(row)
    return (
        f"{what} had no effect and was reverted: none follows for {_seconds(bounds.pause)} s "
        f"(plan.no_gain_pause_s); a person must {todo}"
    )


def _lowers(row: Any, _: LimitBounds) -> str:
    return f"{row.config_value} is less than the quota that applies, and this row limits nobody"


def _above(row: Any, _: LimitBounds) -> str:
    return f"{row.config_value} is more than the quota that applies, and this row raises none"


def _not_restorable(row: Any, _: LimitBounds) -> str:
    return (
        f"its value now, {row.prior_value}, is out of the bounds of what may be written, so it "
        "could not be restored"
    )


WORDS: dict[str, Words] = {
    limit.FIRST: _first,
    limit.STEP_DOWN: _step,
    limit.STEP_UP: _step,
    limit.STEP_WITHOUT_GAIN: partial(_no_gain, last_step_of="the last step of "),
    limit.NO_GAIN: _no_gain,
    limit.EFFECT_PENDING: _effect_pending,
    limit.OFFENCE_UNKNOWN: lambda row, _: f"{_subject(row)[1]} is not known",
    limit.PAUSED: _paused,
    limit.AT_FLOOR: lambda *_: (
        "the value that applies is as low as a plan may set it, or a lower one had no gain"
    ),
    limit.AT_BOUND: lambda *_: "no result asks for more, or the last raise had no gain",
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
