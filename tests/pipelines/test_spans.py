"""Which time a batch of facts touches, as spans: no Spark needed."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.results.result import Result
from quotaflow.pipelines.spans import Span, joined
from quotaflow.schemas import tables

START = datetime(2026, 11, 21, 23, 58, tzinfo=UTC)


def result(carry_s: int = 0) -> Result:
    """Buckets of 10 s, and a rule that remembers 30 s."""
    facts, table = tables.REQUESTS, tables.PRODUCER_ID_RATES
    return Result(table, facts, 10, 30, lambda f: f, lambda known: known.facts, carry_s)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def ends(spans: Iterable[Span]) -> list[tuple[float, float | None]]:
    def since_start(time: datetime) -> float:
        return (time - START).total_seconds()

    return [(since_start(s.start), since_start(s.end) if s.end else None) for s in spans]


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        pytest.param([0], [(0, 40)], id="a bucket reaches as far as the rule remembers it"),
        pytest.param([0, 10], [(0, 50)], id="overlapping spans are one"),
        pytest.param([0, 40], [(0, 80)], id="so are touching ones"),
        pytest.param([0, 50], [(0, 40), (50, 90)], id="a gap is not recomputed"),
        pytest.param([50, 0, 10], [(0, 90)], id="buckets may come in any order"),
        pytest.param([0, 0], [(0, 40)], id="late and timely rows of one bucket"),
    ],
)
def test_spans(starts: list[float], expected: list[tuple[float, float]]) -> None:
    assert ends(result().spans(map(at, starts))) == expected


def test_a_sequential_result_runs_from_the_first_touched_bucket_to_the_end() -> None:
    assert ends(result(carry_s=60).spans(map(at, [50, 20]))) == [(20, None)]
    forward = replace(result(), runs_forward=True)
    assert ends(forward.spans(map(at, [50, 20]))) == [(20, None)]
    assert forward.spans([]) == []


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=120))
def test_joined_spans_cover_all_are_few_and_stay_apart(starts: list[int]) -> None:
    spans = result().spans(map(at, starts))
    assert len(spans) <= 32
    pairs = ends(spans)
    assert all((a[1] or 0) < b[0] for a, b in pairwise(pairs))
    for start in starts:
        assert any(low <= start and start + 40 <= (high or 0) for low, high in pairs)


def test_the_nearest_spans_are_joined_first_when_there_are_too_many() -> None:
    starts = [100 * i for i in range(33)] + [3_255]
    pairs = ends(result().spans(map(at, starts)))
    assert len(pairs) == 32
    # 3200..3240 and 3255..3295 are 15 s apart, the others 60 s: those two, then the first two.
    assert (pairs[0], pairs[-1]) == ((0, 140), (3_200, 3_295))


def test_a_span_without_an_end_swallows_what_follows() -> None:
    assert ends(joined([Span(at(500), at(600)), Span(at(0))])) == [(0, None)]


def test_what_holds_since_a_time_touches_all_that_follows_its_bucket() -> None:
    assert ends(result().spans([at(0), at(200)], at(105))) == [(0, 40), (100, None)]
    assert ends(result(carry_s=60).spans([at(50)], at(25))) == [(20, None)]
    assert result().spans([]) == []


@pytest.mark.parametrize(
    ("span", "time", "date"),
    [
        pytest.param(
            Span(at(0)),
            "t >= timestamp'2026-11-21 23:58:00.000000Z'",
            "d >= date'2026-11-21'",
            id="open",
        ),
        pytest.param(
            Span(at(0), at(120)),
            "(t >= timestamp'2026-11-21 23:58:00.000000Z' "
            "AND t < timestamp'2026-11-22 00:00:00.000000Z')",
            "(d >= date'2026-11-21' AND d <= date'2026-11-22')",
            id="up to midnight",
        ),
    ],
)
def test_spans_in_sql(span: Span, time: str, date: str) -> None:
    assert (span.holds("t"), span.holds_date("d")) == (time, date)
