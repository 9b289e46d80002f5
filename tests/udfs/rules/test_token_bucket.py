import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.token_bucket import TokenBucket

from ...cases import cases

START = 1_700_000_000_000


@cases(
    ("records", "at_ms", "expected"),
    ("full at any real time", [], 0, 55.0),
    ("a record spends", [(0, 5)], 0, 50.0),
    ("a second brings the quota back", [(0, 5)], 1_000, 55.0),
    ("no more than the burst is saved up", [(0, 5)], 60_000, 55.0),
    ("a burst beyond it is a debt", [(0, 100)], 0, -45.0),
    ("debt over quota is the wait: 45 / 5 = 9 s", [(0, 100)], 9_000, 0.0),
    ("zero spends nothing", [(0, 55), (0, 0)], 0, 0.0),
    ("time that falls back takes the refill back", [(0, 55)], -1_000, -5.0),
    ("a refund stops at the burst", [(0, -10)], 0, 55.0),
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
    st.lists(st.tuples(st.integers(0, 5_000), st.floats(0, 1e6)), max_size=30), st.floats(0.01, 1e6)
)
def test_spending_never_leaves_more_than_the_burst_nor_less_than_all_spent(steps, quota):
    tokens, now_ms = TokenBucket(quota), START
    for step_ms, value in steps:
        now_ms += step_ms
        tokens.record(value, now_ms)
    spent = math.fsum(value for _, value in steps)
    assert tokens.burst - spent - 1e-3 <= tokens.measure(now_ms) <= tokens.burst


@cases(
    ("bounds", "message"),
    ("no quota", {"quota": 0}, "quota must be above 0 and finite, got 0"),
    ("negative", {"quota": -1}, "quota must be above 0 and finite, got -1"),
    ("inf", {"quota": math.inf}, "quota must be above 0 and finite, got inf"),
    ("nan", {"quota": math.nan}, "quota must be above 0 and finite, got nan"),
    ("no windows", {"quota": 5, "num_windows": 0}, "num_windows must be at least 1, got 0"),
    ("no length", {"quota": 5, "window_ms": 0}, "window_ms must be at least 1, got 0"),
)
def test_refuses(bounds, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        TokenBucket(**bounds)
