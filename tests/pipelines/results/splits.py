"""Results over parts of the time, and over facts in any order."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange

from ...rule_rows import Rows, compute


def sorted_rows(rows: Rows) -> list[str]:
    """Rows as text in one order, so that two lists of rows compare."""
    return sorted(map(str, rows))


def assert_same_however_split(
    result: Result, cuts: Sequence[datetime], shuffled: Rows, **rows: Rows
) -> Rows:
    """Assert that the rule gives one table, however the time and the facts are split.

    `cuts` are starts of buckets. `shuffled` are the facts in another order; what the rule looks up
    is in the opposite order too. Returns the table.
    """
    whole = compute(result, **rows)
    others = {name: table[::-1] for name, table in rows.items()} | {result.facts.name: shuffled}
    starts = [EVER.start, *sorted(set(cuts)), None]
    parts = [
        row
        for start, end in pairwise(starts)
        if start is not None
        for row in compute(result, [TimeRange(start, end)], **others)
    ]
    assert sorted_rows(parts) == sorted_rows(whole)
    return whole


def assert_parts_equal_whole(result: Result, cuts: Sequence[datetime], **facts: Rows) -> None:
    """Assert that a sequential rule gives one table by time, and by keys that are independent.

    `cuts` are starts of buckets, in order. Each part of the time gets the rows of the parts before
    it as `carried_rows`. Doubles must be equal too: a restored state is the same state.
    """
    whole = sorted_rows(compute(result, **facts))
    starts = [EVER.start, *cuts]
    computed: Rows = []
    for start, end in zip(starts, [*cuts, None], strict=True):
        computed += compute(result, [TimeRange(start, end)], carried_rows=computed, **facts)
    assert sorted_rows(computed) == whole
    assert sorted_rows(_by_key(result, facts[result.facts.name])) == whole


def _by_key(result: Result, facts: Rows) -> Rows:
    assert result.split.key
    of_key = defaultdict[tuple[Any, ...], Rows](list)
    for fact in facts:
        of_key[tuple(fact.get(name) for name in result.split.key)].append(fact)
    parts = (compute(result, **{result.facts.name: rows}) for rows in of_key.values())
    return [row for part in parts for row in part]
