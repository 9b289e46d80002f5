"""All events of a series at once, by the rule that product code steps through."""

from collections.abc import Iterable, Iterator

from quotaflow.udfs.rules.alert import Breach, Event, ThresholdRule, end, step


def walk(rule: ThresholdRule, points: Iterable[tuple[int, float]]) -> Iterator[Event]:
    """Every event of a whole series, given its readings (time in ms, value) in order of time."""
    breach: Breach | None = None
    for time_ms, value in points:
        breach, events = step(rule, breach, time_ms, value)
        yield from events
    yield from end(rule, breach)
