from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.alert import (
    AlertState,
    Breach,
    CloseReason,
    Event,
    ThresholdRule,
    end,
    step,
)

from ... import case_tables
from ...cases import cases
from ..alert_events import walk

HOUR_S = 3_600
RULE = ThresholdRule("slow", bound=5_000, clear=4_500, for_ms=180_000, stale_ms=600_000)
LOW = ThresholdRule("low", bound=10, clear=11, for_ms=180_000, stale_ms=600_000, is_above=False)


def readings(*points):
    """(second, value) as the walk takes them."""
    return [(second * 1_000, value) for second, value in points]


def steady(value, *seconds):
    return [(second, value) for second in seconds]


def events_of(rule, points):
    """(second, state, reason) of every event."""
    events = walk(rule, readings(*points))
    return [(e.time_ms / 1_000, str(e.state), e.reason and str(e.reason)) for e in events]


@cases(
    ("points", "expected"),
    *case_tables.rows(__file__, "events", steady),
    ("below the bound", steady(4_999, *range(0, 600, 60)), []),
    ("at the bound is not past it", steady(5_000, *range(0, 600, 60)), []),
    (
        "an event every hour",
        steady(6_000, *range(0, 2 * HOUR_S + 1, 600)),
        [
            (600, "opened", None),
            (3_600, "still_open", None),
            (7_200, "still_open", None),
            (7_800, "closed", "stale"),
        ],
    ),
    (
        "infinity is past every bound",
        steady(float("inf"), 0, 200),
        [(200, "opened", None), (800, "closed", "stale")],
    ),
)
def test_events(points, expected):
    assert events_of(RULE, points) == expected


def test_below_a_bound():
    points = [*steady(9, 0, 200), (300, 11), (400, 11.5)]
    assert events_of(LOW, points) == [(200, "opened", None), (400, "closed", "cleared")]


def test_evidence():
    points = readings((0, 6_000), (100, 9_000), (200, 7_000), (300, 8_000), (400, 0))
    opened, closed = walk(RULE, points)
    assert opened.breach == Breach(0, 200_000, 9_000, 3, 200_000)
    assert (closed.breach.peak, closed.breach.points, closed.breach.first_ms) == (9_000, 5, 0)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"clear": 5_001}, "clear must be at most the bound 5000, got 5001"),
        ({"is_above": False}, "clear must be at least the bound 5000, got 4500"),
        ({"bound": float("inf")}, "clear must be at most the bound inf"),
        ({"clear": float("nan")}, "got nan"),
        ({"for_ms": -1}, "for_ms must be at least 0, got -1"),
        ({"stale_ms": 0}, "stale_ms must be at least 1, got 0"),
    ],
)
def test_wrong_rules(changed, problem):
    fields = {"bound": 5_000, "clear": 4_500, "for_ms": 1, "stale_ms": 1} | changed
    with pytest.raises(ValueError, match=problem):
        ThresholdRule("slow", **fields)


def by_definition(rule, points):
    """Every event as the words say it, looking at the whole series at once."""
    cuts = [i for i, (a, b) in enumerate(pairwise(points), 1) if b[0] - a[0] > rule.stale_ms]
    for start, stop in pairwise([0, *cuts, len(points)]):
        yield from _of_segment(rule, points[start:stop])


def _of_segment(rule, points):
    at = 0
    while at < len(points):
        run = at
        while run < len(points) and rule.is_past(points[run][1]):
            run += 1
        long_enough = [i for i in range(at, run) if points[i][0] - points[at][0] > rule.for_ms]
        if not long_enough:
            at = run + 1
            continue
        clear = [i for i in range(long_enough[0], len(points)) if rule.is_clear(points[i][1])]
        last = clear[0] if clear else len(points) - 1
        yield _event(
            AlertState.OPENED, None, points[at : long_enough[0] + 1], points[long_enough[0]][0]
        )
        for i in range(long_enough[0] + 1, last if clear else last + 1):
            if points[i][0] // 3_600_000 != points[i - 1][0] // 3_600_000:
                yield _event(AlertState.STILL_OPEN, None, points[at : i + 1], points[i][0])
        if clear:
            yield _event(
                AlertState.CLOSED, CloseReason.CLEARED, points[at : last + 1], points[last][0]
            )
        else:
            stale = points[last][0] + rule.stale_ms
            yield _event(AlertState.CLOSED, CloseReason.STALE, points[at : last + 1], stale)
        at = last + 1


def _event(state, reason, breach, time_ms):
    return (time_ms, state, reason, breach[0][0], max(value for _, value in breach), len(breach))


def seen(event: Event):
    breach = event.breach
    return (event.time_ms, event.state, event.reason, breach.first_ms, breach.peak, breach.points)


ANY_RULE = st.builds(
    ThresholdRule,
    st.just("any"),
    bound=st.just(10),
    clear=st.sampled_from([10, 7]),
    for_ms=st.sampled_from([0, 1, 5_000, 900_000]),
    stale_ms=st.sampled_from([1, 10_000, 4_000_000]),
)
ANY_POINTS = st.lists(
    st.tuples(
        st.sampled_from([1, 999, 1_000, 5_000, 10_000, 10_001, 900_000, 3_600_000, 4_000_001]),
        st.sampled_from([6, 7, 8, 10, 11, 11, 12, float("inf")]),
    ),
    max_size=40,
)


def timed(gaps):
    time_ms, points = 0, []
    for gap_ms, value in gaps:
        time_ms += gap_ms
        points.append((time_ms, value))
    return points


@given(rule=ANY_RULE, gaps=ANY_POINTS)
def test_the_walk_does_what_the_words_say(rule, gaps):
    points = timed(gaps)
    assert [seen(event) for event in walk(rule, points)] == list(by_definition(rule, points))


@given(rule=ANY_RULE, gaps=ANY_POINTS, cut=st.integers(0, 40))
def test_what_was_told_last_is_all_that_an_open_alert_needs(rule, gaps, cut):
    """A row of the table and the readings after it give what the whole series gives."""
    points = timed(gaps)
    whole = list(walk(rule, points))
    carried = [e for e in whole[:cut] if e.time_ms <= (points[-1][0] if points else 0)][-1:]
    for event in carried:
        open_still = event.state != AlertState.CLOSED
        breach, events = (event.breach if open_still else None), []
        for time_ms, value in points:
            if time_ms > event.time_ms:
                breach, more = step(rule, breach, time_ms, value)
                events += more
        events += end(rule, breach)
        assert events == [e for e in whole if e.time_ms > event.time_ms]
