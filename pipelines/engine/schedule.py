"""Splits computations into the tasks of Spark: by time, or by key where a rule is sequential."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from quotaflow.pipelines.engine.computation import Computation, KeyPart
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, merged

ROWS_PER_TASK = 1_000_000
"""Facts that one task reads: enough to outweigh its start, and few enough for its memory."""
ROWS_PER_WAVE = 2_000_000
"""Facts that are computed before rows are written: a bound of what the driver holds."""
_KEYED = 4
"""How many times as many facts a task of a sequential rule takes: it reads all of them, and keeps
the few of its keys."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of one computation: some time of its ranges, or some keys of a sequential rule."""

    computation: Computation
    ranges: tuple[TimeRange, ...]
    keys: KeyPart | None = None


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Parts that one task computes, and about how many facts it reads."""

    parts: tuple[Part, ...]
    facts: int


def task_plans(
    computations: Sequence[Computation], files: Sequence[DataFile], rows_per_task: int
) -> list[TaskPlan]:
    """The tasks of computations on the same facts, by the facts' files and the bounds of these."""
    ranges = merged(time_range for each in computations for time_range in each.ranges)
    rows = _rows_by_period(files, ranges)
    total = sum(rows.values())
    cuts = _cuts(rows, total, rows_per_task)
    per_task = total // (len(cuts) + 1)
    by_time = [
        [
            Part(computation, kept)
            for computation in computations
            if computation.carry is None and (kept := _within(computation, low, high))
        ]
        for low, high in pairwise([None, *cuts, None])
    ]
    sequential = [each for each in computations if each.carry is not None]
    if not cuts:
        parts = [*by_time[0], *(Part(each, each.ranges) for each in sequential)]
        return [TaskPlan(tuple(parts), total)]
    split = [TaskPlan(tuple(parts), per_task) for parts in by_time if parts]
    return [*split, *_by_key(sequential, total, rows_per_task)]


def _by_key(
    computations: Sequence[Computation], total: int, rows_per_task: int
) -> Iterator[TaskPlan]:
    parts = -(-total // (_KEYED * rows_per_task))
    for computation in computations:
        for number in range(parts):
            keys = KeyPart(number, parts)
            yield TaskPlan((Part(computation, computation.ranges, keys),), total // parts)


def waves(plans: Sequence[TaskPlan], rows_per_wave: int) -> Iterator[list[TaskPlan]]:
    """Spans in groups of so many facts. Parts of one sequential computation stay together."""
    wave, facts, last = list[TaskPlan](), 0, None
    for plan in plans:
        keyed = plan.parts[0].computation if plan.parts[0].keys else None
        is_together = keyed is not None and keyed is last
        if wave and not is_together and facts + plan.facts > rows_per_wave:
            yield wave
            wave, facts = [], 0
        wave.append(plan)
        facts, last = facts + plan.facts, keyed
    if wave:
        yield wave


def _within(
    computation: Computation, low: datetime | None, high: datetime | None
) -> tuple[TimeRange, ...]:
    """The ranges between two cuts, each moved back to the start of the computation's bucket."""
    start = _floored(low, computation.bucket) if low else datetime.min.replace(tzinfo=UTC)
    time = TimeRange(start, _floored(high, computation.bucket) if high else None)
    return tuple(kept for each in computation.ranges if (kept := each.overlap(time)))


def _floored(time: datetime, period: timedelta) -> datetime:
    epoch = datetime.fromtimestamp(0, UTC)
    return time - (time - epoch) % period


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


def _cuts(
    rows: Mapping[tuple[datetime, datetime], int], total: int, rows_per_task: int
) -> list[datetime]:
    """Times that split the rows into equal parts."""
    parts = -(-total // rows_per_task)
    edges = sorted({edge for period in rows for edge in period})
    steps = _density(rows, edges)
    cuts, seen = list[datetime](), 0.0
    for start, end, count in steps:
        while len(cuts) + 1 < parts and seen + count >= (len(cuts) + 1) * total / parts:
            share = ((len(cuts) + 1) * total / parts - seen) / count
            cuts.append(start + (end - start) * share)
        seen += count
    return cuts


def _density(
    rows: Mapping[tuple[datetime, datetime], int], edges: Sequence[datetime]
) -> Iterator[tuple[datetime, datetime, float]]:
    """About how many rows are between one edge and the next; nothing where there are none."""
    starts: dict[datetime, float] = {}
    for (start, end), count in rows.items():
        rate = count / max((end - start).total_seconds(), 1e-6)
        starts[start] = starts.get(start, 0.0) + rate
        starts[end] = starts.get(end, 0.0) - rate
    per_s = 0.0
    for start, end in pairwise(edges):
        per_s += starts.get(start, 0.0)
        between = per_s * (end - start).total_seconds()
        if between > 0:
            yield start, end, between
