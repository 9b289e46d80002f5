"""Totals of sums: whatever a client or a broker does to them, each count counts once."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ...cases import cases
from ...rows import INFINITE, NAN, Row, at, cumulative, delta, gauge
from .view_tables import Picked, picked, view

TOTALS = "metric_totals ORDER BY series_id, event_time"
FLAGS = ("is_gap", "is_overlap", "is_reset", "is_negative", "is_recovered")


def flags(row: Row) -> str:
    return " ".join(name.removeprefix("is_") for name in FLAGS if row[name])


@cases(
    ("points", "expected"),
    ("deltas add up", [delta(10, 0, 3), delta(20, 10, 4)], [(3, 3, ""), (4, 7, "")]),
    (
        "late ones take their place",
        [delta(20, 10, 4), delta(30, 20, 5), delta(10, 0, 3)],
        [(3, 3, ""), (4, 7, ""), (5, 12, "")],
    ),
    (
        "a point that came twice counts once",
        [delta(10, 0, 3), delta(10, 0, 3, payload_sha256="other route"), delta(20, 10, 4)],
        [(3, 3, ""), (4, 7, "")],
    ),
    (
        "the older form of a topic with dots counts under the topic alone",
        [delta(10, 0, 3), delta(10, 0, 3, series_id=2, topic="a_b", is_topic_twin=True)],
        [(3, 3, "")],
    ),
    (
        "a delta that never came leaves a gap",
        [delta(10, 0, 3), delta(30, 20, 4)],
        [(3, 3, ""), (4, 7, "gap")],
    ),
    (
        "a gap begins beyond one millisecond",
        [delta(10, 0, 3), delta(20, 10.001, 4), delta(30, 20.002, 5)],
        [(3, 3, ""), (4, 7, ""), (5, 12, "gap")],
    ),
    (
        "a delta that begins inside the one before",
        [delta(10, 0, 3), delta(20, 5, 4)],
        [(3, 3, ""), (4, 7, "overlap")],
    ),
    (
        "a WindowedCount falls and that is no reset",
        [delta(10, 0, 3), delta(20, 10, -2)],
        [(3, 3, ""), (-2, 1, "negative")],
    ),
    ("no start is no gap", [delta(10, None, 3), delta(20, None, 4)], [(3, 3, ""), (4, 7, "")]),
    (
        "numbers no total survives are left out",
        [delta(10, 0, 3), delta(20, 10, NAN), delta(30, 20, INFINITE), delta(40, 30, 1)],
        [(3, 3, ""), (1, 4, "gap")],
    ),
    (
        "cumulative values count from the first on",
        [cumulative(10, 0, 30), cumulative(20, 0, 34), cumulative(30, 0, 40)],
        [(0, 0, ""), (4, 4, ""), (6, 10, "")],
    ),
    (
        "a cumulative value that fell started again",
        [cumulative(10, 0, 30), cumulative(20, 0, 5), cumulative(30, 0, 7)],
        [(0, 0, ""), (5, 5, "reset"), (2, 7, "")],
    ),
    (
        "another start is a reset whatever the value",
        [cumulative(10, 0, 30), cumulative(20, 15, 35)],
        [(0, 0, ""), (35, 35, "gap reset")],
    ),
    (
        "cumulative values without a start",
        [cumulative(10, None, 30), cumulative(20, None, 34), cumulative(30, None, 1)],
        [(0, 0, ""), (4, 4, ""), (1, 5, "reset")],
    ),
    (
        "what may fall is not reset by falling",
        [cumulative(10, 0, 30, is_monotonic=False), cumulative(20, 0, 5, is_monotonic=False)],
        [(0, 0, ""), (-25, -25, "negative")],
    ),
    (
        "a cumulative value holds whoever refused it",
        [cumulative(10, 0, 30), cumulative(20, 0, 34, accepted=False), cumulative(30, 0, 40)],
        [(0, 0, ""), (4, 4, ""), (6, 10, "")],
    ),
)
def test_totals(points: list[Row], expected: Picked) -> None:
    actual = view(TOTALS, {"client_metrics": points})
    assert [(row["increase"], row["total"], flags(row)) for row in actual] == expected


@cases(
    ("points", "expected"),
    (
        "nobody else told of its span",
        [delta(10, 0, 3), delta(20, 10, 4, accepted=False), delta(30, 20, 5)],
        [(3, ""), (7, "recovered"), (12, "")],
    ),
    (
        "the next accepted delta holds it",
        [delta(10, 0, 3), delta(20, 10, 4, accepted=False), delta(30, 10, 9)],
        [(3, ""), (12, "")],
    ),
    (
        "an accepted delta after it in time holds it",
        [delta(10, 0, 3), delta(9, 5, 2, accepted=False), delta(20, 10, 4)],
        [(3, ""), (7, "")],
    ),
    (
        "the same point was accepted",
        [delta(20, 10, 4, accepted=False), delta(20, 10, 4), delta(10, 0, 3)],
        [(3, ""), (7, "")],
    ),
    (
        "a client that keeps its delta until it is taken",
        [delta(10, 0, 3, accepted=False), delta(20, 0, 7, accepted=False), delta(30, 20, 1)],
        [(7, "recovered"), (8, "")],
    ),
    (
        "a client that is always refused",
        [delta(10, 0, 3, accepted=False), delta(20, 10, 4, accepted=False)],
        [(3, "recovered"), (7, "recovered")],
    ),
    (
        "nobody knows its span",
        [delta(10, 0, 3), delta(20, None, 4, accepted=False), delta(30, 20, 5)],
        [(3, ""), (8, "gap")],
    ),
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
