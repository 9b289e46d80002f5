"""The time buckets of each result that new facts, or new rows of lookup tables, make wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.incremental.result_state import ResultState
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVER = datetime.fromtimestamp(0, UTC)
# Retention removes whole days, and never the current one. So facts of the last day are there.
_ALWAYS_KEPT = timedelta(days=1)


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


def is_late(facts: "DataFrame", max_lateness_s: int) -> Column:
    """Whether a fact's record is too much later than its event to correct a result.

    Facts without a record, such as snapshots, are never late.
    """
    if "record_time" not in facts.columns:
        return F.lit(False)
    # Integers, because this runs for each fact and result: adding an interval uses the calendar.
    took_us = F.unix_micros("record_time") - F.unix_micros("event_time")
    return took_us > max_lateness_s * 1_000_000


def arrivals(results: Iterable[Result], facts: "DataFrame", max_lateness_s: int) -> "DataFrame":
    """A row for each result that a fact concerns, with the affected `bucket`: null if it is late.

    This is a part of the stream's own plan. Otherwise Spark reads all columns of a micro-batch
    again for each use.
    """
    arrival_columns = [_arrival(result) for result in results]
    late = is_late(facts, max_lateness_s)
    return (
        facts.select(
            "cluster_id", "event_time", late.alias("is_late"), F.explode(F.array(*arrival_columns))
        )
        .where("col IS NOT NULL AND event_time IS NOT NULL")
        .select(
            *("cluster_id", "event_time", "is_late", "col.result"),
            F.when(~F.col("is_late"), F.timestamp_seconds("col.bucket_s")).alias("bucket"),
        )
    )


def _arrival(result: Result) -> Column:
    second = F.unix_seconds("event_time")
    bucket_s = second - F.pmod(second, F.lit(result.bucket_s))
    arrival = F.struct(F.lit(result.table.name).alias("result"), bucket_s.alias("bucket_s"))
    return F.when(result.is_relevant(), arrival) if result.is_relevant else arrival


def by_result(arrived: "DataFrame") -> dict[str, list[Row]]:
    """New rows counted by bucket, for each result by its name."""
    rows = (
        # Grouped by cluster too: for the maximum of a text Spark sorts instead of hashing.
        arrived.groupBy("result", "cluster_id", "is_late", "bucket")
        .agg(F.count(F.lit(1)).alias("rows"), F.max("event_time").alias("latest"))
        .collect()
    )
    rows_by_result: dict[str, list[Row]] = {}
    for row in rows:
        rows_by_result.setdefault(row["result"], []).append(row)
    return rows_by_result


def affected_buckets(
    result: Result, rows: list[Row], lookup_changes: "LookupChanges", state: ResultState
) -> AffectedBuckets:
    """The effect of these counted rows, and of new rows of lookup tables, on one result."""
    since, seen, latest = lookup_changes.changes_for(result, state)
    latest.extend((_utc(row["latest"]), row["cluster_id"]) for row in rows)
    sinces = [time for time in (since, state.dirty_since) if time]
    in_buckets = dict[datetime, int]()
    for row in rows:
        if row["bucket"]:
            bucket = _utc(row["bucket"])
            in_buckets[bucket] = in_buckets.get(bucket, 0) + row["rows"]
    return AffectedBuckets(
        rows=sum(row["rows"] for row in rows),
        late=sum(row["rows"] for row in rows if row["is_late"]),
        rows_by_bucket=in_buckets,
        since=min(sinces, default=None),
        latest=max(latest, default=None),
        state=replace(state, context_seen=seen),
    )


@dataclass(frozen=True, slots=True)
class LookupChanges:
    """New rows of lookup tables, and the time since which facts are kept.

    Each table is read once per batch.
    """

    spark: "SparkSession"
    batch: Batch
    _newest_rows: dict[tuple[str, str, datetime | None], Row] = field(default_factory=dict)
    _kept: dict[str, datetime | None] = field(default_factory=dict)

    def changes_for(
        self, result: Result, state: ResultState
    ) -> tuple[datetime | None, dict[str, datetime], list[tuple[datetime, str]]]:
        """Since when new lookup rows are valid, how far lookups are read, and the newest rows."""
        sinces, seen, latest = list[datetime](), dict(state.context_seen), []
        for lookup in result.lookups:
            if lookup.valid_from is None:
                continue
            name = lookup.table.name
            row = self._newest(lookup.table, lookup.valid_from, seen.get(name))
            if row["newest"] is None:
                continue
            # A query that starts has computed nothing yet that could be older than its lookups.
            if name in seen or self.batch.batch_id:
                is_first = lookup.reaches_back and name not in seen
                sinces.append(_EVER if is_first else _utc(row["since"]))
                latest.append((_utc(row["newest"]), row["cluster_id"]))
            seen[name] = _utc(row["newest"])
        return min(sinces, default=None), seen, latest

    def computable(self, result: Result, time_ranges: list[TimeRange]) -> list[TimeRange]:
        """The time ranges without times whose facts retention removed: those rows stay."""
        if not time_ranges or time_ranges[0].start >= datetime.now(UTC) - _ALWAYS_KEPT:
            return time_ranges
        name = result.facts.name
        if name not in self._kept:
            self._kept[name] = self.batch.warehouse.kept_since(self.spark, name)
        kept_since = self._kept[name]
        return time_ranges if kept_since is None else result.computable(time_ranges, kept_since)

    def _newest(self, table: Table, valid_from: str, seen: datetime | None) -> Row:
        key = table.name, valid_from, seen
        if key not in self._newest_rows:
            rows = self.batch.warehouse.read(self.spark, table.name)
            # Read before the result is computed: rows that arrive later are new to the next batch.
            if seen is not None:
                rows = rows.where(F.col(table.time) > F.lit(seen))
            self._newest_rows[key] = rows.agg(
                F.max(table.time).alias("newest"),
                F.min(F.expr(valid_from)).alias("since"),
                F.max_by("cluster_id", table.time).alias("cluster_id"),
            ).collect()[0]
        return self._newest_rows[key]


def _utc(time: datetime) -> datetime:
    # PySpark collects TIMESTAMPs in the time zone of this machine, without naming it.
    return time.astimezone(UTC)
