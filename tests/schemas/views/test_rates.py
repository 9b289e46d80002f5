"""Rates of sums: an increase over the time it took, or nothing."""

import pytest

from ...cases import cases
from ...rows import Row, cumulative, delta
from .view_tables import Picked, picked, view


@cases(
    ("points", "expected"),
    ("of deltas", [delta(10, 0, 30), delta(14, 10, 8)], [(10_000, 3), (4_000, 2)]),
    (
        "a gap is no part of a delta's span",
        [delta(10, 0, 3), delta(30, 20, 40)],
        [(10_000, 0.3), (10_000, 4)],
    ),
    (
        "of cumulative values, the first unknown",
        [cumulative(10, 0, 30), cumulative(14, 0, 38)],
        [(None, None), (4_000, 2)],
    ),
    ("no time is no infinite rate", [delta(10, 10, 5)], [(0, None)]),
    ("a clock that went back", [delta(10, 12, 5)], [(-2_000, None)]),
    ("an unknown start", [delta(10, None, 5)], [(None, None)]),
    ("the greatest is still finite", [delta(10, 9.999999, 1e299)], [(0.001, 1e305)]),
)
def test_rates(points: list[Row], expected: Picked) -> None:
    rates = view("metric_totals ORDER BY series_id, event_time", {"client_metrics": points})
    actual = picked(rates, "elapsed_ms", "rate_per_s")
    assert [tuple(pytest.approx(number) for number in pair) for pair in expected] == actual
