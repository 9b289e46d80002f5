"""The eight levels of client quotas: which one holds a client, and who shares its bucket."""

import pytest

from quotaflow.udfs.rules.quota import QuotaEntity

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


@pytest.mark.parametrize(
    ("level", "bucket"),
    [
        pytest.param(1, ("alice", "orders"), id="user and client id"),
        pytest.param(2, ("alice", "orders"), id="user, every client id for itself"),
        pytest.param(3, ("alice", None), id="user, over all its client ids"),
        pytest.param(4, ("alice", "orders"), id="client id, every user for itself"),
        pytest.param(5, ("alice", "orders"), id="every pair for itself"),
        pytest.param(6, ("alice", None), id="every user for itself"),
        pytest.param(7, (None, "orders"), id="client id, over all its users"),
        pytest.param(8, (None, "orders"), id="every client id for itself"),
    ],
)
def test_the_most_specific_level_holds(level: int, bucket: tuple[str | None, str | None]) -> None:
    expected = EffectiveQuota(level, 1_000.0 * level, *bucket)
    assert effective(quotas(level), "alice", "orders") == expected
    assert effective(quotas(*range(level, 9)), "alice", "orders") == expected


@pytest.mark.parametrize(
    ("user", "client_id", "level"),
    [
        pytest.param("alice", "clicks", 2, id="another client id of the user"),
        pytest.param("bob", "orders", 4, id="another user of the client id"),
        pytest.param("bob", "clicks", 5, id="nobody named"),
        pytest.param("alice", "", 3, id="no client id: the user's quota alone"),
        pytest.param("bob", "", 6, id="no client id: the default user's"),
    ],
)
def test_others_fall_to_less_specific_levels(user: str, client_id: str, level: int) -> None:
    limit = effective(quotas(*ALL), user, client_id)
    assert limit is not None
    assert limit.level == level


@pytest.mark.parametrize(
    ("levels", "user", "client_id"),
    [
        pytest.param((), "alice", "orders", id="no quota at all"),
        pytest.param((1, 2, 3), "bob", "orders", id="quotas of another user"),
        pytest.param((1, 4, 7), "alice", "clicks", id="quotas of another client id"),
        pytest.param((1, 2, 4, 5, 7, 8), "alice", "", id="no client id, quotas of client ids"),
    ],
)
def test_unlimited(levels: tuple[int, ...], user: str, client_id: str) -> None:
    assert effective(quotas(*levels), user, client_id) is None


def test_a_quota_of_zero_is_one() -> None:
    limit = effective({ALL[3]: 0.0, ALL[6]: 5.0}, "alice", "orders")
    assert limit == EffectiveQuota(3, 0.0, "alice", None)
