"""Which client quota holds a client, and with whom it shares that quota's bucket.

Kafka's ClientQuotaManager (KIP-13, KIP-55). Each kind of quota (producer_byte_rate and so on) is
resolved on its own: pass quotas of one kind.
"""

import math
from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class EffectiveQuota:
    """A quota in force: its level (1 to 8), its value, and the bucket it is counted on.

    Everybody with the same `bucket_user` and `bucket_client_id` at a broker shares the quota; None
    stands for all users, or all client ids.
    """

    level: int
    quota: float
    bucket_user: str | None
    bucket_client_id: str | None


def effective(
    quotas: Mapping[QuotaEntity, float], user: str, client_id: str
) -> EffectiveQuota | None:
    """The quota that holds a client, by its user's name and its client id; None: unlimited.

    A client without a client id ("") is held by quotas of users alone: to Kafka an empty name is
    none.
    """
    for level, (of_user, of_client_id) in enumerate(LEVELS, 1):
        if not client_id and of_client_id != ANY:
            continue
        quota = quotas.get(
            QuotaEntity(
                user=user if of_user == NAMED else None,
                is_default_user=of_user == DEFAULT,
                client_id=client_id if of_client_id == NAMED else None,
                is_default_client_id=of_client_id == DEFAULT,
            )
        )
        if quota is not None:
            return EffectiveQuota(
                level,
                quota,
                bucket_user=None if of_user == ANY else user,
                bucket_client_id=None if of_client_id == ANY else client_id,
            )
    return None


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
