"""Results over parts of the time, and over facts in any order."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange

from ...rule_rows import Rows, compute


def sorted_rows(rows: Rows) -> list[str]:
    """Rows that compare, whatever their order."""
    return sorted(map(str, rows))


def assert_same_however_split(
    result: Result, cuts: Sequence[datetime], shuffled: Rows, **rows: Rows
) -> Rows:
    """Assert that the rule gives one table, however the time and the facts are split.

    `cuts` are starts of buckets. `shuffled` are the facts in another order. Returns the table.
    """
    whole = compute(result, **rows)
    others: dict[str, Any] = {**rows, result.facts.name: shuffled}
    starts = [EVER.start, *sorted(set(cuts)), None]
    parts = [
        row
        for start, end in pairwise(starts)
        if start is not None
        for row in compute(result, [TimeRange(start, end)], **others)
    ]
    assert sorted_rows(parts) == sorted_rows(whole)
    return whole
