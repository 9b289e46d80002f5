import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.token_bucket import TokenBucket
from quotaflow.udfs.rules.what_if import ReplayOutcome, ReplayQuota, replay

from ...cases import cases

START = 1_700_000_000_000
ONE_PER_S = ReplayQuota(1.0)


def every(apart_ms, count, begin_ms=0):
    return [START + begin_ms + n * apart_ms for n in range(count)]


@cases(
    ("arrivals", "expected"),
    ("nobody", {}, {}),
    ("who took no ids", {"a": []}, {"a": ReplayOutcome()}),
    ("the burst is free", {"a": every(0, 11)}, {"a": ReplayOutcome(allocated_ids=11)}),
    (
        "the twelfth and thirteenth wait a second each, one after the other",
        {"a": every(0, 13)},
        {"a": ReplayOutcome(13, 2, 2_000, 1_000, 2_000)},
    ),
    ("the rate itself is free", {"a": every(1_000, 500)}, {"a": ReplayOutcome(500)}),
    (
        "at twice the rate the saved tokens last for 22 ids, then the rate limits it",
        {"a": every(500, 41)},
        {"a": ReplayOutcome(41, 20, 19_500, 1_000, 10_000)},
    ),
)
def test_what_one_rate_does(arrivals, expected):
    assert replay(arrivals, ONE_PER_S) == expected


def test_innocent_is_who_would_not_have_waited_alone():
    outcomes = replay({"loop": every(100, 200), "calm": every(4_000, 5)}, ONE_PER_S)
    assert outcomes["loop"].throttled_ids > 100
    assert outcomes["calm"].throttled_ids >= 1
    assert [outcomes["loop"].is_innocent, outcomes["calm"].is_innocent] == [False, True]


ARRIVALS = st.dictionaries(
    st.sampled_from("abcd"), st.lists(st.integers(START, START + 20_000), max_size=40), max_size=4
)
QUOTAS = st.builds(
    ReplayQuota, st.floats(0.01, 50), st.integers(1, 11), st.sampled_from([100, 1_000])
)


@given(ARRIVALS, QUOTAS)
def test_every_id_comes_once_and_never_early(arrivals, quota):
    outcomes = replay(arrivals, quota)
    for source, outcome in outcomes.items():
        assert outcome.allocated_ids == len(arrivals[source])
        assert 0 <= outcome.longest_throttle_ms <= outcome.throttle_time_ms
        assert outcome.late_ms >= 0
        assert (outcome.throttled_ids == 0) == (outcome.throttle_time_ms == 0)


@given(ARRIVALS, QUOTAS)
def test_who_fits_the_burst_never_waits_and_alone_nobody_is_innocent(arrivals, quota):
    outcomes = replay(arrivals, quota)
    if sum(map(len, arrivals.values())) <= quota.token_bucket().burst:
        assert not any(outcome.throttled_ids for outcome in outcomes.values())
    if len(arrivals) == 1:
        assert not any(outcome.is_innocent for outcome in outcomes.values())


@given(ARRIVALS)
def test_waiting_keeps_the_debt_small_whatever_comes(arrivals):
    """Closed loop: a source requests again when its debt is paid, so each owes at most one id."""
    outcomes = replay(arrivals, ONE_PER_S)
    longest_ms = 1_000 * len(arrivals)
    assert all(outcome.longest_throttle_ms <= longest_ms for outcome in outcomes.values())


@given(st.lists(st.integers(START, START + 60_000), min_size=1, max_size=60), QUOTAS)
def test_the_first_wait_is_the_open_loop_s(times, quota):
    """Until somebody waits nothing differs from what the tables add up."""
    bucket, throttled = TokenBucket(quota.ids_per_s, quota.num_windows, quota.window_ms), 0
    for time_ms in sorted(times):
        bucket.record(1, time_ms)
        throttled += round(-bucket.measure(time_ms) / quota.ids_per_s * 1_000) > 0
    (outcome,) = replay({"a": times}, quota).values()
    assert (outcome.throttled_ids > 0) == (throttled > 0)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf")])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match=r"^quota must be above 0 and finite, got "):
        replay({"a": [START]}, ReplayQuota(rate))
