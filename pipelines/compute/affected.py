"""The time buckets of each result that new facts, or new rows of lookup tables, make wrong."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.compute.lookup_changes import LookupChanges
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.compute.result_state import ResultState
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.table import sql_columns
from quotaflow.udfs.engine.arrivals import ARRIVALS, Interest, count_arrivals
from quotaflow.udfs.engine.rule import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ARRIVALS_SQL = sql_columns(ARRIVALS)


@dataclass(frozen=True, slots=True)
class Arrival:
    """New facts of one cluster that affect one bucket of a result, or that are late."""

    cluster_id: str
    is_late: bool
    bucket: datetime | None
    rows: int
    latest: datetime


@dataclass(frozen=True, slots=True)
class AffectedBuckets:
    """The effect of a batch on one result: new rows, their buckets, and the state after the batch.

    `rows` of which `late` are too late. `since`: all buckets from this time on are affected.
    `latest` is the newest event time with its cluster.
    """

    rows: int = 0
    late: int = 0
    rows_by_bucket: Mapping[datetime, int] = field(default_factory=dict)
    since: datetime | None = None
    latest: tuple[datetime, str] | None = None
    state: ResultState = field(default_factory=ResultState)

    def rows_before(self, time_ranges: list[TimeRange]) -> int:
        """How many rows have buckets before all time ranges, so that nothing is computed."""
        first = min((time_range.start for time_range in time_ranges), default=None)
        rows = self.rows_by_bucket.items()
        return sum(n for bucket, n in rows if first is None or bucket < first)


def arrivals(
    results: Iterable[Result], facts: "DataFrame", max_lateness_s: int | None
) -> "DataFrame":
    """New facts counted by result and bucket, as `udfs.engine.arrivals.ARRIVALS`.

    This is a part of the stream's own plan. Otherwise Spark reads all columns of a micro-batch
    again for each use.
    """
    columns, count = counting(results, facts.columns, max_lateness_s)
    return facts.select(*columns).mapInArrow(count, _ARRIVALS_SQL)


def counting(
    results: Iterable[Result], columns: Sequence[str], max_lateness_s: int | None
) -> tuple[list[str], Callable[[Batches], Batches]]:
    """Which of the facts' columns say what they affect, and the function that counts them."""
    interests = [Interest(each.table.name, each.relevant, each.bucket_s) for each in results]
    named = {"cluster_id", "event_time", "record_time"}
    named |= set[str]().union(*(texts.words(each.relevant) for each in interests))
    lateness_s = max_lateness_s if "record_time" in columns else None
    return [name for name in columns if name in named], count_arrivals(interests, lateness_s)


def by_result(arrived: pa.Table) -> dict[str, list[Arrival]]:
    """New facts counted by bucket, for each result by its name."""
    arrivals_of: dict[str, list[Arrival]] = {}
    for row in arrived.cast(ARRIVALS).to_pylist():
        arrivals_of.setdefault(row.pop("result"), []).append(Arrival(**row))
    return arrivals_of


def affected_buckets(
    result: Result, rows: list[Arrival], lookup_changes: LookupChanges, state: ResultState
) -> AffectedBuckets:
    """The effect of these counted rows, and of new rows of lookup tables, on one result."""
    since, seen, latest = lookup_changes.changes_for(result, state)
    latest.extend((row.latest, row.cluster_id) for row in rows)
    sinces = [time for time in (since, state.dirty_since) if time]
    in_buckets = dict[datetime, int]()
    for row in rows:
        if row.bucket:
            in_buckets[row.bucket] = in_buckets.get(row.bucket, 0) + row.rows
    return AffectedBuckets(
        rows=sum(row.rows for row in rows),
        late=sum(row.rows for row in rows if row.is_late),
        rows_by_bucket=in_buckets,
        since=min(sinces, default=None),
        latest=max(latest, default=None),
        state=replace(state, context_seen=seen),
    )
