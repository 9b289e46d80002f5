"""What a quota should be raised to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.quota import raised

from ...cases import cases


@cases(
    ("limit", "usage", "throttled", "expected"),
    ("a quarter more than what is used", 20_000, 20_000, 0.1, 25_000),
    ("two digits, rounded up", 20_000, 23_000, 0.1, 29_000),
    ("never more than double", 20_000, 90_000, 0.1, 40_000),
    ("always throttled: what it would use is unknown", 20_000, 20_100, 0.9, 40_000),
    ("never less than there is, and a quarter", 20_000, 10_000, 0.0, 25_000),
    ("a small rate", 1.5, 1.5, 0.0, 1.9),
    ("a tiny rate", 0.02, 0.02, 0.0, 0.025),
)
def test_next_quota(limit: float, usage: float, throttled: float, expected: float) -> None:
    assert raised(limit, usage, throttled) == expected


@given(st.floats(0.01, 1e12), st.floats(0, 1e13), st.floats(0, 1))
def test_a_quota_grows_and_never_leaps(limit: float, usage: float, throttled: float) -> None:
    quota = raised(limit, usage, throttled)
    assert limit < quota <= limit * 2.2


def test_no_quota_of_nothing() -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        raised(0, 5, 0)
