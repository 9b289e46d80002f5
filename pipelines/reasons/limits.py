"""The codes of limits and quotas: why a plan sets, steps or reverts one, or leaves it."""

from datetime import timedelta
from typing import Any

from quotaflow.pipelines.reasons.wording import rendered, sentences
from quotaflow.schemas.configs import PRODUCER_ID_EXPIRATION_MS
from quotaflow.udfs.rules.limit import RAISE, LimitBounds

LOWERS = "lowers_quota"
ABOVE_QUOTA = "above_quota"
NOT_RESTORABLE = "prior_not_restorable"
USAGE_UNKNOWN = "usage_unknown"
_SHORT_HISTORY = "history_too_short"


def why(code: str, row: Any, bounds: LimitBounds) -> str:
    """The sentence of a code. `row` has the columns of desired_configs that it reads."""
    cells = {
        "kind": _kind(row),
        "config_value": row.config_value,
        "prior_value": row.prior_value,
        "min_gain": f"{bounds.min_gain:.0%}",
        "settle_s": bounds.settle.total_seconds(),
        "pause_s": bounds.pause.total_seconds(),
    }
    return rendered(sentences("limits")[code], cells)


def short_history(row: Any, least: timedelta) -> str:
    """Why a user with too little known usage gets no first quota."""
    cells = {"history_s": row.history_s or 0, "min_history_s": least.total_seconds()}
    return rendered(sentences("limits")[_SHORT_HISTORY], cells)


def _kind(row: Any) -> str:
    """What the row limits, or that it raises a quota."""
    if row.direction == RAISE:
        return "raise"
    if row.config_key == PRODUCER_ID_EXPIRATION_MS.key:
        return "expiration"
    return "rate" if row.config_key.endswith(".replication.throttled.rate") else "limit"
