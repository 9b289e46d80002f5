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
