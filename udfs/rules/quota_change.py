"""What to set a quota to that holds a client back: an answer, and never a leap."""

import math

HEADROOM = 0.25
MOST_STEP = 2.0
"""No step more than doubles a quota: what a throttled client would send without it is unknown."""


def raised(limit: float, bucket_usage: float, throttled_share: float) -> float:
    """The next quota for a bucket that is held at `limit` (same unit), rounded to two digits up.

    `throttled_share`: the part of its requests that were throttled, 0 to 1. A bucket that is
    always throttled could use any amount, so its quota is doubled; one that is now and then gets
    what it used and a quarter more.
    """
    wanted = max(bucket_usage, limit) * (1 + HEADROOM)
    if throttled_share > 1 / 2:
        wanted = limit * MOST_STEP
    return _rounded_up(min(wanted, limit * MOST_STEP))


def _rounded_up(value: float) -> float:
    """Two significant digits, not less."""
    if value <= 0:
        raise ValueError(f"a quota must be above 0, got {value}")
    scale = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(round(value / scale, 6)) * scale:.3g}")
