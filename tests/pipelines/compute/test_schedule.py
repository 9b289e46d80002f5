"""How computations are split: every time once, in about equal parts."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.maintainer import levels
from quotaflow.pipelines.compute.result import WHOLE, Result, SplitBy
from quotaflow.pipelines.compute.schedule import ROWS_PER_TASK, TaskPlan, task_plans, waves
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, merged
from quotaflow.schemas.table import TIMESTAMP
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs.engine.rule import Rule

from ...delta_tables import NOON

MINUTE = timedelta(minutes=1)


def at(minutes: float) -> datetime:
    return NOON + minutes * MINUTE


def computation(
    name: str, ranges: list[tuple[float, float | None]], bucket_s: int = 60, carry: bool = False
) -> Computation:
    result = Result(
        table=TABLES["traffic"],
        facts=REQUESTS,
        bucket_s=bucket_s,
        lookback_s=60,
        rule=Rule(name, "SELECT 1", pa.schema([("event_time", TIMESTAMP)])),
        carry_s=60 if carry else 0,
        split=SplitBy(("key",)) if carry else WHOLE,
    )
    times = (TimeRange(at(start), None if end is None else at(end)) for start, end in ranges)
    return Computation(result, tuple(times))


def file(start: float, end: float, rows: int | None) -> DataFile:
    return DataFile(f"{start}.parquet", rows, at(start), at(end))


def covered(split: list[TaskPlan], name: str) -> list[TimeRange]:
    return merged(
        time_range
        for plan in split
        for part in plan.parts
        if part.name == name
        for time_range in part.ranges
    )


def test_few_facts_are_one_task() -> None:
    both = [computation("a", [(0, 5)]), computation("b", [(2, None)], carry=True)]
    (plan,) = task_plans(both, [file(0, 5, 999)], rows_per_task=1_000)
    assert [part.name for part in plan.parts] == ["a", "b"]
    assert plan.facts == 999


def test_a_skewed_minute_is_not_split_below_a_bucket() -> None:
    split = task_plans([computation("a", [(0, 60)])], [file(30, 30.1, 10_000)], rows_per_task=100)
    assert covered(split, "a") == [TimeRange(at(0), at(60))]
    assert len(split) <= 3


def test_files_without_bounds_or_counts_do_not_stop_the_split() -> None:
    files = [DataFile("x", None, None, None), file(0, 10, 5_000), file(0, 10, None)]
    assert len(task_plans([computation("a", [(0, 10)])], files, rows_per_task=1_000)) == 5


def keys(plans: list[TaskPlan]) -> list[tuple[int, int]]:
    """The parts of keys of these tasks, in order."""
    named = [part.keys for plan in plans for part in plan.parts]
    return [(key.number, key.parts) for key in named if key]


def test_a_sequential_rule_is_split_by_its_keys() -> None:
    split = task_plans([computation("a", [(0, None)], carry=True)], [file(0, 60, 800)], 100)
    assert keys(split) == [(n, 4) for n in range(4)]
    assert {plan.parts[0].ranges for plan in split} == {(TimeRange(at(0)),)}


def test_a_bucket_with_many_facts_is_split_by_keys() -> None:
    """Results of one key share tasks; a rule that reads few facts has one."""
    by_key = [
        replace(each, result=replace(each.result, split=SplitBy(key)), share=share)
        for name, key, share in (
            ("a", ("k",), 1.0),
            ("b", ("k",), 0.5),
            ("c", ("l",), 1.0),
            ("few", ("l",), 0.01),
            ("whole", (), 1.0),
        )
        for each in [computation(name, [(0, 1)])]
    ]
    split = task_plans(by_key, [file(0, 1, 400)], 50)
    named = [("".join(part.name for part in plan.parts)) for plan in split]
    assert named == ["few", *["ab"] * 4, *["c"] * 4, "whole"]
    assert [plan.facts for plan in split] == [4, *[100] * 8, 400]


def test_parts_of_the_keys_stay_in_one_wave() -> None:
    both = [computation("a", [(0, 60)]), computation("b", [(0, None)], carry=True)]
    split = task_plans(both, [file(0, 60, 8_000)], 1_000)
    grouped = list(waves(split, tasks_at_once=2))
    assert [plan for wave in grouped for plan in wave] == split
    assert [len(wave) for wave in grouped] == [2, 2, 2, 2, 4]
    assert keys(grouped[-1]) == [(n, 4) for n in range(4)]


MOST_FACTS = 2_000_000
OF_ONE_TASK = {"topic_names", "replication_throttles", "fetch_faults", "preferred_replicas"}
"""Rules of one task a minute: a row of theirs reads facts of any client and broker."""


@pytest.mark.parametrize("job", ["request_results", "fetch_results"])
def test_the_minute_of_a_million_lines_a_second_is_many_tasks(job: str) -> None:
    """Without knowing how few facts some rules read."""
    results = JOBS[job].results
    assert results
    files = [file(0, 1, 50_000)] * 1_200
    for level, group in enumerate(levels(results(Conf()))):
        minute = [Computation(each, (TimeRange(at(0), at(1)),)) for each in group]
        plans = task_plans(minute, files, ROWS_PER_TASK)
        large = [plan for plan in plans if plan.facts > MOST_FACTS]
        assert {part.name for plan in large for part in plan.parts} <= OF_ONE_TASK
        if job == "request_results" and level == 1:
            assert len(plans) - len(large) >= 30
            assert max(map(len, waves(plans, tasks_at_once=60))) >= 60


RANGES = st.lists(st.tuples(st.integers(0, 600), st.integers(1, 90)), min_size=1, max_size=6).map(
    lambda pairs: [(float(start), float(start + length)) for start, length in pairs]
)
FILES = st.lists(
    st.tuples(st.integers(-20, 700), st.integers(0, 120), st.integers(0, 3_000)), max_size=12
).map(lambda rows: [file(start, start + length, n) for start, length, n in rows])


@pytest.mark.parametrize("bucket_s", [1, 11, 60, 3_600])
@given(ranges=RANGES, files=FILES, rows_per_task=st.integers(1, 5_000))
def test_spans_have_every_time_of_a_range_once(
    bucket_s: int, ranges: list[tuple[float, float]], files: list[DataFile], rows_per_task: int
) -> None:
    whole = computation("a", list(ranges), bucket_s)
    whole = replace(whole, ranges=tuple(merged(whole.ranges)))
    split = task_plans([whole], files, rows_per_task)
    pieces = [time_range for plan in split for part in plan.parts for time_range in part.ranges]
    in_order = sorted(pieces, key=lambda piece: piece.start)
    assert merged(pieces) == list(whole.ranges)
    for earlier, later in pairwise(in_order):
        assert earlier.end is not None
        assert earlier.end <= later.start
    edges = {whole_range.start for whole_range in whole.ranges}
    for piece in pieces:
        assert piece.start in edges or (piece.start.timestamp() % bucket_s == 0)
