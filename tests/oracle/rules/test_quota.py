"""The eight levels of client quotas: which one holds a client, and who shares its bucket."""

from quotaflow.udfs.rules.quota import QuotaEntity

from ...cases import cases
from .quota import EffectiveQuota, effective

ALL = {
    1: QuotaEntity(user="alice", client_id="orders"),
    2: QuotaEntity(user="alice", is_default_client_id=True),
    3: QuotaEntity(user="alice"),
    4: QuotaEntity(is_default_user=True, client_id="orders"),
    5: QuotaEntity(is_default_user=True, is_default_client_id=True),
    6: QuotaEntity(is_default_user=True),
    7: QuotaEntity(client_id="orders"),
    8: QuotaEntity(is_default_client_id=True),
}


def quotas(*levels: int) -> dict[QuotaEntity, float]:
    """One quota on each of these levels, its value its level times a thousand."""
    return {ALL[level]: 1_000.0 * level for level in levels}


@cases(
    ("level", "bucket"),
    ("user and client id", 1, ("alice", "orders")),
    ("user, every client id for itself", 2, ("alice", "orders")),
    ("user, over all its client ids", 3, ("alice", None)),
    ("client id, every user for itself", 4, ("alice", "orders")),
    ("every pair for itself", 5, ("alice", "orders")),
    ("every user for itself", 6, ("alice", None)),
    ("client id, over all its users", 7, (None, "orders")),
    ("every client id for itself", 8, (None, "orders")),
)
def test_the_most_specific_level_holds(level: int, bucket: tuple[str | None, str | None]) -> None:
    expected = EffectiveQuota(level, 1_000.0 * level, *bucket)
    assert effective(quotas(level), "alice", "orders") == expected
    assert effective(quotas(*range(level, 9)), "alice", "orders") == expected


@cases(
    ("user", "client_id", "level"),
    ("another client id of the user", "alice", "clicks", 2),
    ("another user of the client id", "bob", "orders", 4),
    ("nobody named", "bob", "clicks", 5),
    ("no client id: the user's quota alone", "alice", "", 3),
    ("no client id: the default user's", "bob", "", 6),
)
def test_others_fall_to_less_specific_levels(user: str, client_id: str, level: int) -> None:
    limit = effective(quotas(*ALL), user, client_id)
    assert limit is not None
    assert limit.level == level


@cases(
    ("levels", "user", "client_id"),
    ("no quota at all", (), "alice", "orders"),
    ("quotas of another user", (1, 2, 3), "bob", "orders"),
    ("quotas of another client id", (1, 4, 7), "alice", "clicks"),
    ("no client id, quotas of client ids", (1, 2, 4, 5, 7, 8), "alice", ""),
)
def test_unlimited(levels: tuple[int, ...], user: str, client_id: str) -> None:
    assert effective(quotas(*levels), user, client_id) is None


def test_a_quota_of_zero_is_one() -> None:
    limit = effective({ALL[3]: 0.0, ALL[6]: 5.0}, "alice", "orders")
    assert limit == EffectiveQuota(3, 0.0, "alice", None)
