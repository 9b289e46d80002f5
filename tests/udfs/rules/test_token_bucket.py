import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.token_bucket import TokenBucket

START = 1_700_000_000_000


@pytest.mark.parametrize(
    ("records", "at_ms", "expected"),
    [
        pytest.param([], 0, 55.0, id="full at any real time"),
        pytest.param([(0, 5)], 0, 50.0, id="a record spends"),
        pytest.param([(0, 5)], 1_000, 55.0, id="a second brings the quota back"),
        pytest.param([(0, 5)], 60_000, 55.0, id="no more than the burst is saved up"),
        pytest.param([(0, 100)], 0, -45.0, id="a burst beyond it is a debt"),
        pytest.param([(0, 100)], 9_000, 0.0, id="debt over quota is the wait: 45 / 5 = 9 s"),
        pytest.param([(0, 55), (0, 0)], 0, 0.0, id="zero spends nothing"),
        pytest.param([(0, 55)], -1_000, -5.0, id="time that falls back takes the refill back"),
        pytest.param([(0, -10)], 0, 55.0, id="a refund stops at the burst"),
    ],
)
def test_tokens_of_five_per_second(records, at_ms, expected):
    tokens = TokenBucket(5)
    for after_ms, value in records:
        tokens.record(value, START + after_ms)
    assert tokens.measure(START + at_ms) == pytest.approx(expected)


def test_burst_is_quota_times_windows_times_seconds():
    assert TokenBucket(5, 100, 1_000).burst == 500.0
    assert TokenBucket(0.5, 10, 200).burst == 1.0


def test_kip_599_waits_twelve_seconds_for_560_of_500():
    tokens = TokenBucket(5, 100, 1_000)
    tokens.record(560, START)
    assert -tokens.measure(START) / tokens.quota == 12.0


@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.floats(0, 1e6)), max_size=30),
    st.floats(0.01, 1e6),
)
def test_spending_never_leaves_more_than_the_burst_nor_less_than_all_spent(steps, quota):
    tokens, now_ms = TokenBucket(quota), START
    for step_ms, value in steps:
        now_ms += step_ms
        tokens.record(value, now_ms)
    spent = math.fsum(value for _, value in steps)
    assert tokens.burst - spent - 1e-3 <= tokens.measure(now_ms) <= tokens.burst


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        pytest.param({"quota": 0}, "quota must be above 0 and finite, got 0", id="no quota"),
        pytest.param({"quota": -1}, "quota must be above 0 and finite, got -1", id="negative"),
        pytest.param({"quota": math.inf}, "quota must be above 0 and finite, got inf", id="inf"),
        pytest.param({"quota": math.nan}, "quota must be above 0 and finite, got nan", id="nan"),
        pytest.param(
            {"quota": 5, "num_windows": 0}, "num_windows must be at least 1, got 0", id="no windows"
        ),
        pytest.param(
            {"quota": 5, "window_ms": 0}, "window_ms must be at least 1, got 0", id="no length"
        ),
    ],
)
def test_refuses(bounds, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TokenBucket(**bounds)
