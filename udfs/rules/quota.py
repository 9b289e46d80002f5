"""Client quotas: what they are set on, their eight levels, and how far to raise one."""

import math
from dataclasses import dataclass

NAMED, DEFAULT, ANY = "named", "default", "any"
"""How an entity selects users, and client ids: by name, as the default for those without a quota by
name, or not at all."""

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
"""How an entity selects (user, client id), the most specific first: level 1 to 8."""


EXEMPT_APIS = (
    "WRITE_TXN_MARKERS",
    "ALTER_PARTITION",
    "ALTER_ISR",  # ALTER_PARTITION's name before Kafka 3.2
    "VOTE",
    "BEGIN_QUORUM_EPOCH",
    "END_QUORUM_EPOCH",
    "FETCH_SNAPSHOT",
    "UPDATE_RAFT_VOTER",
    # Of controllers in ZooKeeper mode, to Kafka 3.9.
    "LEADER_AND_ISR",
    "STOP_REPLICA",
    "UPDATE_METADATA",
    "CONTROLLED_SHUTDOWN",
)
"""APIs between brokers and controllers whose time counts against no quota (KIP-124): they are
answered by RequestHandlerHelper.sendResponseExemptThrottle. Fetches of followers are exempt too.
A request that is refused with CLUSTER_AUTHORIZATION_FAILED is charged (handleError)."""

CLUSTER_AUTHORIZATION_FAILED = 31
"""The error code of a client without rights on the cluster."""


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """What a quota is set on, as Kafka's admin tools name it: a default part has no name."""

    user: str | None = None
    is_default_user: bool = False
    client_id: str | None = None
    is_default_client_id: bool = False


NEAR_SHARE = 0.8
"""The share of a quota from which its use counts as near it."""
HEADROOM = 0.25
MAX_STEP_FACTOR = 2.0
"""A step at most doubles a quota: what a throttled client would send without it is unknown."""


def raised(limit: float, quota_bucket_usage: float, throttled_share: float) -> float:
    """The next quota for a bucket throttled at `limit` (same unit), rounded up to two digits.

    `throttled_share`: the share of its requests that were throttled, 0 to 1. A bucket that is
    throttled most of the time could use any amount, so its quota is doubled. Otherwise it gets its
    usage plus a quarter.
    """
    target = max(quota_bucket_usage, limit) * (1 + HEADROOM)
    if throttled_share > 1 / 2:
        target = limit * MAX_STEP_FACTOR
    return _rounded_up(min(target, limit * MAX_STEP_FACTOR))


def raises(limit: float, quota_bucket_usage: float, throttled_share: float) -> tuple[float, ...]:
    """Steps to try in turn, each higher than the last: `raised`, half more, and the most."""
    first = raised(limit, quota_bucket_usage, throttled_share)
    others = (
        _rounded_up(limit * factor) for factor in ((1 + MAX_STEP_FACTOR) / 2, MAX_STEP_FACTOR)
    )
    return (first, *(other for other in others if other > first))


def _rounded_up(value: float) -> float:
    """Rounded up to two significant digits."""
    if value <= 0:
        raise ValueError(f"a quota must be above 0, got {value}")
    scale = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(round(value / scale, 6)) * scale:.3g}")
