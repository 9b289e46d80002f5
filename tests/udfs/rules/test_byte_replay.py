"""Requests replayed under a byte quota."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.byte_replay import ByteOutcome, ByteQuota, Charge, replay

from ... import case_tables
from ...cases import cases

START = 1_700_000_000_000
WRITES, READS = ByteQuota(100, False), ByteQuota(100, True)


def charges(*sizes: float, source: str = "a", **given: float) -> list[Charge]:
    """Requests of one connection, a second apart."""
    return [
        Charge(START + n * 1_000, source, source, size, **given) for n, size in enumerate(sizes)
    ]


@cases(
    ("requests", "quota", "expected"),
    *case_tables.rows(__file__, "what_a_quota_does", charges, ByteOutcome, WRITES=WRITES),
    (
        # The broker answered without records, so its data came with the next one.
        "an answer without records is no charge",
        [*charges(0, throttle_ms=500), Charge(START + 500, "a", "a", 900)],
        READS,
        {"a": ByteOutcome(2, 1, 0, 500)},
    ),
)
def test_what_a_quota_does(
    requests: list[Charge], quota: ByteQuota, expected: dict[str, ByteOutcome]
) -> None:
    assert replay(requests, quota) == expected


def test_who_shares_the_quota_waits_too() -> None:
    both = charges(*[200] * 30) + charges(*[10] * 30, source="b")
    outcomes = replay(both, WRITES)
    assert outcomes["b"].throttled_after > 0
    assert replay(charges(*[10] * 30, source="b"), WRITES)["b"].throttled_after == 0


def test_a_longer_throttle_makes_what_follows_later() -> None:
    """Twice the quota for a minute takes two minutes: the client waits the other one."""
    (outcome,) = replay(charges(*[200] * 60), WRITES).values()
    assert outcome.throttle_ms_after == pytest.approx(60_000, rel=0.2)


def test_a_consumer_reads_no_faster_than_its_quota() -> None:
    """Brokers let it wait longer than needed: what is refused counts in the throttle time."""
    (outcome,) = replay(charges(*[5_000] * 4), READS).values()
    assert 160_000 < outcome.throttle_ms_after < 400_000


REQUESTS = st.lists(
    st.builds(
        Charge,
        st.integers(START, START + 60_000),
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.integers(0, 5_000),
        st.integers(0, 2_000),
    ),
    max_size=40,
)


@given(REQUESTS, st.booleans())
def test_a_quota_above_all_throttles_nobody_and_before_is_what_brokers_answered(
    requests: list[Charge], is_fetch: bool
) -> None:
    outcomes = replay(requests, ByteQuota(1e12, is_fetch))
    assert sum(each.throttle_ms_after for each in outcomes.values()) == 0
    assert sum(each.requests for each in outcomes.values()) == len(requests)
    before_ms = sum(each.throttle_ms_before for each in outcomes.values())
    assert before_ms == sum(each.throttle_ms for each in requests)


@given(REQUESTS, st.booleans(), st.floats(1, 1_000))
def test_the_order_of_rows_does_not_matter(
    requests: list[Charge], is_fetch: bool, bytes_per_s: float
) -> None:
    quota = ByteQuota(bytes_per_s, is_fetch)
    apart = list({(each.connection, each.time_ms): each for each in requests}.values())
    outcomes = replay(apart, quota)
    assert replay(apart[::-1], quota) == outcomes
    for outcome in outcomes.values():
        assert (outcome.throttled_after == 0) == (outcome.throttle_ms_after == 0)
        assert 0 <= outcome.longest_ms_after <= outcome.throttle_ms_after
