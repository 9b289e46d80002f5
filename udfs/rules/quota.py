"""Client quotas: what they are set on, their eight levels, and how far to raise one."""

import math
from dataclasses import dataclass

NAMED, DEFAULT, ANY = "named", "default", "any"
"""What an entity says of users, and of client ids: a name, those without a quota of their own by
name, or nothing at all."""

LEVELS = (
    (NAMED, NAMED),
    (NAMED, DEFAULT),
    (NAMED, ANY),
    (DEFAULT, NAMED),
    (DEFAULT, DEFAULT),
    (DEFAULT, ANY),
    (ANY, NAMED),
    (ANY, DEFAULT),
)
"""What an entity says of (user, client id), the most specific first: level 1 to 8."""


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whom a quota was set for, as Kafka's admin tools name it: a default part has no name."""

    user: str | None = None
    is_default_user: bool = False
    client_id: str | None = None
    is_default_client_id: bool = False


HEADROOM = 0.25
MAX_STEP_FACTOR = 2.0
"""No step more than doubles a quota: what a throttled client would send without it is unknown."""


def raised(limit: float, bucket_usage: float, throttled_share: float) -> float:
    """The next quota for a bucket that is held at `limit` (same unit), rounded to two digits up.

    `throttled_share`: the part of its requests that were throttled, 0 to 1. A bucket that is
    always throttled could use any amount, so its quota is doubled; one that is now and then gets
    what it used and a quarter more.
    """
    wanted = max(bucket_usage, limit) * (1 + HEADROOM)
    if throttled_share > 1 / 2:
        wanted = limit * MAX_STEP_FACTOR
    return _rounded_up(min(wanted, limit * MAX_STEP_FACTOR))


def _rounded_up(value: float) -> float:
    """Two significant digits, not less."""
    if value <= 0:
        raise ValueError(f"a quota must be above 0, got {value}")
    scale = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(round(value / scale, 6)) * scale:.3g}")
