"""A sequential result over parts of its facts must equal the result over all of them."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange

from ...rule_rows import Rows, compute


def assert_parts_equal_whole(result: Result, cuts: Sequence[datetime], **facts: Rows) -> None:
    """Compare rows of all facts with rows by time and with rows by independent keys.

    `cuts` are starts of buckets, in order. Each part of time gets the rows of the parts before it
    as `carried_rows`. Doubles must be equal too: a restored state is the same state.
    """
    whole = _sorted(compute(result, **facts))
    starts = [EVER.start, *cuts]
    computed: Rows = []
    for start, end in zip(starts, [*cuts, None], strict=True):
        computed += compute(result, [TimeRange(start, end)], carried_rows=computed, **facts)
    assert _sorted(computed) == whole
    assert _sorted(_by_key(result, facts[result.facts.name])) == whole


def _by_key(result: Result, facts: Rows) -> Rows:
    assert result.split_by
    of_key = defaultdict[tuple[Any, ...], Rows](list)
    for fact in facts:
        of_key[tuple(fact.get(name) for name in result.split_by)].append(fact)
    parts = (compute(result, **{result.facts.name: rows}) for rows in of_key.values())
    return [row for part in parts for row in part]


def _sorted(rows: Rows) -> list[str]:
    return sorted(map(str, rows))
