"""Totals of sums: whatever a client or a broker does to them, each count counts once."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ... import case_tables
from ...cases import cases
from ...rows import INFINITE, NAN, Row, at, cumulative, delta, gauge
from .view_tables import Picked, picked, view

TOTALS = "metric_totals ORDER BY series_id, event_time"
FLAGS = ("is_gap", "is_overlap", "is_reset", "is_negative", "is_recovered")


def flags(row: Row) -> str:
    return " ".join(name.removeprefix("is_") for name in FLAGS if row[name])


@cases(
    ("points", "expected"),
    *case_tables.rows(__file__, "totals", delta, cumulative, NAN=NAN, INFINITE=INFINITE),
)
def test_totals(points: list[Row], expected: Picked) -> None:
    actual = view(TOTALS, {"client_metrics": points})
    assert [(row["increase"], row["total"], flags(row)) for row in actual] == expected


@cases(
    ("points", "expected"),
    *case_tables.rows(__file__, "a_rejected_delta_counts_only_where_nothing_covers_it", delta),
)
def test_a_rejected_delta_counts_only_where_nothing_covers_it(
    points: list[Row], expected: Picked
) -> None:
    actual = view(TOTALS, {"client_metrics": points})
    assert [(row["total"], flags(row)) for row in actual] == expected


def test_a_restarted_client_and_other_clusters_are_series_of_their_own() -> None:
    again = {"client_instance_id": "i2", "series_id": 2}
    content = {
        "client_metrics": [
            delta(10, 0, 3, series_id=1),
            delta(30, 25, 4, **again),
            delta(40, 30, 5, **again),
            delta(10, 0, 9, series_id=1, cluster_id="c2"),
            gauge(50, "producer.record.send.rate", 1.0),
        ]
    }
    actual = view("metric_totals ORDER BY cluster_id, event_time", content)
    names = ("cluster_id", "client_instance_id", "total", "is_gap")
    assert picked(actual, *names) == [
        ("c1", "i1", 3, False),
        ("c1", "i2", 4, False),
        ("c1", "i2", 9, False),
        ("c2", "i1", 9, False),
    ]


def test_a_gap_says_how_long_it_is() -> None:
    points = [delta(10, 0, 3), delta(30, 20.0005, 4), delta(40, 30, 1)]
    actual = view(TOTALS, {"client_metrics": points})
    assert picked(actual, "gap_ms", "last_event_time") == [
        (None, None),
        (10_000.5, at(10)),
        (None, at(30)),
    ]


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    increases=st.lists(st.integers(0, 1_000), min_size=1, max_size=12),
    restarts=st.sets(st.integers(1, 11)),
    shuffled=st.randoms(use_true_random=False),
)
def test_deltas_and_cumulative_values_of_one_client_agree(
    increases: list[int], restarts: set[int], shuffled: Random
) -> None:
    """Wherever the process restarts, only the first cumulative value's own count is unknown."""
    points, value, start = list[Row](), 0, 0
    for second, increase in enumerate(increases):
        value, start = (increase, second) if second in restarts else (value + increase, start)
        points.append(delta(second + 1, second, increase, series_id=1))
        points.append(cumulative(second + 1, start, value, series_id=2))
    shuffled.shuffle(points)
    actual = view(TOTALS, {"client_metrics": points})
    for series_id, total in ((1, sum(increases)), (2, sum(increases[1:]))):
        of_series = [row for row in actual if row["series_id"] == series_id]
        assert sum(row["increase"] for row in of_series) == total
        assert max(row["total"] for row in of_series) == total
