"""Time ranges that a batch of facts affects, and SQL conditions for their rows."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

# More separate time ranges than this are joined: computing too much is right, only slower.
_MAX_RANGES = 32


Literal = Callable[[datetime], str]
"""Writes a time as a literal of one SQL dialect."""


_IN_SPARK = re.compile(r"\btimestamp'(\d{4,}-\d\d-\d\d)[ T]([\d:.]+)Z?'")


def in_spark(time: datetime) -> str:
    """A TIMESTAMP literal of Spark."""
    return f"timestamp'{_utc(time)}'"


def in_duckdb(time: datetime) -> str:
    """A literal of DuckDB: a TIMESTAMP without a zone, in UTC."""
    return f"TIMESTAMP '{time.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"


def in_delta(time: datetime) -> str:
    """A literal in a predicate of delta-rs, which compares text with a time as a time."""
    return f"'{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"


def as_in_delta(where: str) -> str:
    """A condition of Spark's SQL with its times as `in_delta` has them."""
    return _IN_SPARK.sub(r"'\1T\2Z'", where)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Time from `start` up to, not including, `end`; without an end, up to the newest row."""

    start: datetime
    end: datetime | None = None

    def condition(self, time: str, literal: Literal = in_spark) -> str:
        """SQL that is true for rows of the time range, by default Spark's."""
        low = f"{time} >= {literal(self.start)}"
        return low if self.end is None else f"({low} AND {time} < {literal(self.end)})"

    def overlap(self, other: "TimeRange") -> "TimeRange | None":
        """The time that is in both ranges; None if there is none."""
        start, end = max(self.start, other.start), min(_end(self), _end(other))
        if start >= end:
            return None
        return TimeRange(start, None if self.end is None and other.end is None else end)

    def date_condition(self, date: str) -> str:
        """SQL that is true for the dates of the time range; it prunes partitions of a result."""
        low = f"{date} >= date'{self.start.date()}'"
        return low if self.end is None else f"({low} AND {date} <= date'{self.end.date()}')"


@dataclass(frozen=True, slots=True)
class Since:
    """The times from which on views read facts, of which there are most, and results."""

    facts: datetime
    results: datetime


EVER = TimeRange(datetime(1970, 1, 2, tzinfo=UTC))


def merged(time_ranges: Iterable[TimeRange]) -> list[TimeRange]:
    """The same time as few ranges, in order, that neither overlap nor are adjacent."""
    ordered = sorted(time_ranges, key=lambda time_range: time_range.start)
    apart = ordered[:1]
    for time_range in ordered[1:]:
        if _end(apart[-1]) >= time_range.start:
            apart[-1] = _over(apart[-1], time_range)
        else:
            apart.append(time_range)
    gaps = [b.start - _end(a) for a, b in pairwise(apart)]
    widest = sorted(range(len(gaps)), key=gaps.__getitem__)[1 - _MAX_RANGES :]
    cuts = [0, *(i + 1 for i in sorted(widest)), len(apart)]
    return [_over(apart[first], apart[after - 1]) for first, after in pairwise(cuts) if apart]


def sliced(
    start: datetime, end: datetime | None, until: datetime, size: timedelta
) -> list[TimeRange]:
    """Time ranges of `size` that cover the time from start to end, one after the other.

    Without an end they reach to `until`, and the last one is open.
    """
    stop, slices = max(end or until, start + size if end is None else start), list[TimeRange]()
    while start < stop:
        slices.append(TimeRange(start, min(start + size, stop)))
        start += size
    return slices if end is not None else [*slices[:-1], TimeRange(slices[-1].start)]


def within_any(time_ranges: Sequence[TimeRange], time: str) -> str:
    """SQL that is true for rows of any of the time ranges, for rows that are computed further.

    Spark puts literal times into the Java code of a stage. With other times in each batch, Spark
    would compile its largest stages again and interpret them until then. Spark does not compile a
    lambda, and keeps a filter with one out of the stage. The lambda is true for all rows that the
    rest of the condition selects.
    """
    first = min(time_range.start for time_range in time_ranges)
    starts = f"exists(array({in_spark(first)}), start -> {time} >= start)"
    return f"({any_of(time_range.condition(time) for time_range in time_ranges)}) AND {starts}"


def any_of(conditions: Iterable[str]) -> str:
    """SQL that is true where one of the conditions is."""
    return " OR ".join(f"({condition})" for condition in conditions)


def _over(a: TimeRange, b: TimeRange) -> TimeRange:
    is_open = a.end is None or b.end is None
    return TimeRange(a.start, None if is_open else max(_end(a), _end(b)))


def _end(time_range: TimeRange) -> datetime:
    return time_range.end or datetime.max.replace(tzinfo=UTC)


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%fZ")
