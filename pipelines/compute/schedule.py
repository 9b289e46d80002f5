"""Splits computations into the tasks of Spark: by time, and by key where there are many facts."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from quotaflow.pipelines.compute.computation import Computation, KeyPart
from quotaflow.pipelines.compute.result import SplitBy
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, merged

ROWS_PER_TASK = 1_000_000
"""Facts that one task reads: enough to outweigh its start, and few enough for its memory."""
TASKS_AT_ONCE = 2
"""Tasks whose rows the driver holds at least, before it writes them."""
_KEYED = 2
"""How many times as many facts a task of some keys computes: it reads those of all keys."""
_MOST_PARTS = 64
"""Parts of a key: each reads the key of all facts of its time."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Parts of computations that one task computes, and about how many facts it reads."""

    parts: tuple[Computation, ...]
    facts: int


def task_plans(
    computations: Sequence[Computation], files: Sequence[DataFile], rows_per_task: int
) -> list[TaskPlan]:
    """The tasks of computations on the same facts, by the facts' files and the bounds of these.

    Few facts are one task. More are split by time, at the starts of buckets, and where that leaves
    too many by the keys of the results; results of one key share tasks.
    """
    ranges = merged(time_range for each in computations for time_range in each.ranges)
    spread = _Spread.over(_rows_by_period(files, ranges))
    if spread.total <= rows_per_task:
        return [TaskPlan(tuple(computations), spread.total)]
    cuts = spread.cuts(-(-spread.total // rows_per_task))
    plans = list[TaskPlan]()
    for low, high in pairwise([None, *cuts, None]):
        parts = [
            replace(each, ranges=within)
            for each in computations
            if not each.result.carry_s and (within := _within(each, low, high))
        ]
        plans += _split(parts, spread, rows_per_task)
    for each in computations:
        if each.result.carry_s:
            plans += _split([each], spread, rows_per_task)
    return plans


def _split(
    parts: Sequence[Computation], spread: "_Spread", rows_per_task: int
) -> Iterator[TaskPlan]:
    """The tasks of parts of one time: those with many facts by key, the others in one task."""
    counted = [(part, round(part.share * spread.rows(part.ranges))) for part in parts]
    most_facts = _KEYED * rows_per_task
    few = [each for each in counted if each[1] <= most_facts]
    if few:
        yield TaskPlan(tuple(part for part, _ in few), max(facts for _, facts in few))
    by_key: dict[SplitBy, list[tuple[Computation, int]]] = {}
    for part, facts in counted:
        if facts > most_facts:
            by_key.setdefault(part.result.split, []).append((part, facts))
    for split, many in by_key.items():
        most = max(facts for _, facts in many)
        count = min(-(-most // most_facts), _MOST_PARTS) if split.key else 1
        for number in range(count):
            keys = KeyPart(number, count) if split.key else None
            yield TaskPlan(tuple(replace(part, keys=keys) for part, _ in many), most // count)


def waves(plans: Sequence[TaskPlan], tasks_at_once: int) -> Iterator[list[TaskPlan]]:
    """Tasks in groups of so many; the keys of one time stay together, as all of its rows."""
    wave, last = list[TaskPlan](), None
    for plan in plans:
        first = plan.parts[0]
        same = (first.name, first.ranges) if first.keys else None
        if len(wave) >= tasks_at_once and (same is None or same != last):
            yield wave
            wave = []
        wave.append(plan)
        last = same
    if wave:
        yield wave


def _within(
    computation: Computation, low: datetime | None, high: datetime | None
) -> tuple[TimeRange, ...]:
    """The ranges between two cuts, each moved back to the start of the computation's bucket."""
    bucket = computation.result.bucket
    start = bucket(low) if low else datetime.min.replace(tzinfo=UTC)
    time = TimeRange(start, bucket(high) if high else None)
    return tuple(kept for each in computation.ranges if (kept := each.overlap(time)))


def _rows_by_period(
    files: Sequence[DataFile], ranges: Sequence[TimeRange]
) -> Mapping[tuple[datetime, datetime], int]:
    """About how many rows of the ranges the files have, by the time between their bounds.

    Rows are taken to be spread evenly between the bounds of their file.
    """
    rows: dict[tuple[datetime, datetime], int] = {}
    for file in files:
        if file.first is None or file.last is None or file.rows is None:
            continue
        whole = TimeRange(file.first, max(file.last, file.first + timedelta(milliseconds=1)))
        length = (whole.end or whole.start) - whole.start
        for time_range in ranges:
            if kept := time_range.overlap(whole):
                end = kept.end or whole.end or whole.start
                share = round(file.rows * ((end - kept.start) / length))
                rows[kept.start, end] = rows.get((kept.start, end), 0) + share
    return rows


@dataclass(frozen=True, slots=True)
class _Spread:
    """How facts are spread over time: how many there are before each of some times, in order."""

    times: Sequence[datetime]
    before: Sequence[float]

    @classmethod
    def over(cls, rows: Mapping[tuple[datetime, datetime], int]) -> "_Spread":
        """Of rows by the time between their bounds."""
        times = sorted({edge for period in rows for edge in period})
        starts: dict[datetime, float] = {}
        for (start, end), count in rows.items():
            rate = count / max((end - start).total_seconds(), 1e-6)
            starts[start] = starts.get(start, 0.0) + rate
            starts[end] = starts.get(end, 0.0) - rate
        before, per_s = [0.0], 0.0
        for start, end in pairwise(times):
            per_s += starts.get(start, 0.0)
            before.append(before[-1] + max(per_s, 0.0) * (end - start).total_seconds())
        return cls(times, before)

    @property
    def total(self) -> int:
        """All facts."""
        return round(self.before[-1])

    def rows(self, ranges: Iterable[TimeRange]) -> float:
        """About how many facts some ranges have."""
        return sum(self._until(each.end) - self._until(each.start) for each in ranges)

    def cuts(self, parts: int) -> list[datetime]:
        """Times that split the facts into equal parts."""
        return [self._time(number * self.before[-1] / parts) for number in range(1, parts)]

    def _until(self, time: datetime | None) -> float:
        if time is None or not self.times or time >= self.times[-1]:
            return self.before[-1]
        at = bisect_right(self.times, time)
        return 0.0 if not at else self.before[at - 1] + self._share(at, time)

    def _share(self, at: int, time: datetime) -> float:
        start, end = self.times[at - 1], self.times[at]
        return (self.before[at] - self.before[at - 1]) * ((time - start) / (end - start))

    def _time(self, facts: float) -> datetime:
        at = min(max(bisect_left(self.before, facts), 1), len(self.times) - 1)
        start, end = self.times[at - 1], self.times[at]
        count = self.before[at] - self.before[at - 1]
        return start + (end - start) * ((facts - self.before[at - 1]) / count if count else 0.0)
