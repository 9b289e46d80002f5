"""Keeps a result table equal to one pure function of its facts, whatever the batch boundaries.

A micro-batch of facts touches time buckets; those, and what the rule remembers before them, are
read again from the fact table, computed, and replaced in the result (never merged by key: that
would leave rows whose key vanished). So a late row corrects what it belongs to and a replayed
batch changes nothing. A fact shipped later than `max_lateness` is counted and left to a rebuild:
lateness is a property of the row alone, so the split into batches cannot matter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.sinks import Batch, Count
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# More disjoint spans than this are joined: recomputing too much is right, only slower.
_MOST_SPANS = 32


@dataclass(frozen=True, slots=True)
class Span:
    """Time from `start` up to, not including, `end`; without an end, up to the newest row."""

    start: datetime
    end: datetime | None = None

    def holds(self, time: str) -> str:
        """SQL that is true for rows of the span."""
        low = f"{time} >= timestamp'{_utc(self.start)}'"
        return low if self.end is None else f"({low} AND {time} < timestamp'{_utc(self.end)}')"

    def holds_date(self, date: str) -> str:
        """SQL that is true for the dates of the span: prunes the partitions of a result."""
        low = f"{date} >= date'{self.start.date()}'"
        return low if self.end is None else f"({low} AND {date} <= date'{self.end.date()}')"


@dataclass(frozen=True, slots=True)
class Result:
    """One result table: the facts it reads, the rule, and how far the rule remembers.

    `relevant` picks and shapes the facts the rule reads; it keeps event_time and record_time.
    `compute` is pure: facts to result rows. `lookback_s` is how far back facts matter to a row.
    With `carry_s` the rule is sequential: a row needs the last one of its `carry_key` within
    carry_s seconds, so a change runs forward; `compute` then gets those last rows and the time
    from which on rows are asked for (None for both when it computes everything).
    """

    table: Table
    facts: Table
    bucket_s: int
    lookback_s: int
    relevant: "Callable[[DataFrame], DataFrame]"
    compute: "Callable[[DataFrame, DataFrame | None, datetime | None], DataFrame]"
    carry_s: int = 0
    carry_key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps one result up to date from the stream of its facts."""

    result: Result
    conf: Conf

    def write(self, facts: "DataFrame", batch: Batch) -> None:
        """Recompute and replace what these new facts touch."""
        relevant = self.result.relevant(facts).withColumn("is_late", self._is_late())
        bucket = F.window("event_time", f"{self.result.bucket_s} seconds")["start"]
        touched = (
            relevant.groupBy("is_late", F.when(~F.col("is_late"), bucket).alias("bucket"))
            .agg(
                F.count(F.lit(1)).alias("rows"),
                F.max("event_time").alias("latest"),
                F.max("cluster_id").alias("cluster_id"),
            )
            .collect()
        )
        if not touched:
            return
        late = sum(row["rows"] for row in touched if row["is_late"])
        # Collected TIMESTAMPs come back in this machine's zone; without one they would be misread.
        buckets = [row["bucket"].astimezone(UTC) for row in touched if row["bucket"]]
        written = 0
        if buckets:
            written = self._replace(facts, self.spans(buckets), batch)
        name = self.result.table.name
        counts = [
            Count("in", sum(row["rows"] for row in touched), name),
            Count("out", written, name),
            Count("late", late, name, "past_max_lateness"),
        ]
        newest = max(touched, key=lambda row: row["latest"])
        batch.report(facts.sparkSession, counts, newest["cluster_id"], newest["latest"])

    def spans(self, buckets: Iterable[datetime]) -> list[Span]:
        """The spans whose rows may change when these buckets got new facts."""
        reach = timedelta(seconds=self.result.bucket_s + self.result.lookback_s)
        ordered = sorted(buckets)
        if self.result.carry_s:
            return [Span(ordered[0])]
        return _joined([Span(start, start + reach) for start in ordered])

    def rebuild(self, batch: Batch, session_of: "DataFrame") -> int:
        """Compute the whole table anew, late facts included; returns its number of rows."""
        return self._replace(session_of, [Span(datetime(1970, 1, 2, tzinfo=UTC))], batch, late=True)

    def _replace(
        self, facts: "DataFrame", spans: list[Span], batch: Batch, *, late: bool = False
    ) -> int:
        spark, table = facts.sparkSession, self.result.table
        lookback = timedelta(seconds=self.result.lookback_s)
        read = [Span(span.start - lookback, span.end) for span in spans]
        known = self.result.relevant(
            batch.warehouse.read(spark, self.result.facts.name).where(
                _any(span.holds("event_time") for span in read)
            )
        )
        if not late:
            known = known.where(~self._is_late())
        rows = self.result.compute(known, self._carried(spans[0], batch, spark), spans[0].start)
        rows = rows.where(_any(span.holds(table.time) for span in spans)).persist()
        try:
            where = _any(
                f"({span.holds_date('event_date')} AND {span.holds(table.time)})" for span in spans
            )
            batch.replace(rows, table, where)
            return rows.count()
        finally:
            rows.unpersist()

    def _carried(self, span: Span, batch: Batch, spark: object) -> "DataFrame | None":
        if not self.result.carry_s:
            return None
        table = self.result.table
        before = Span(span.start - timedelta(seconds=self.result.carry_s), span.start)
        rows = batch.warehouse.read(spark, table.name).where(  # type: ignore[arg-type]
            f"{before.holds_date('event_date')} AND {before.holds(table.time)}"
        )
        last = F.max_by(F.struct(*table.column_names), table.time).alias("last")
        return rows.groupBy(*self.result.carry_key).agg(last).select("last.*")

    def _is_late(self) -> Column:
        bound = F.make_dt_interval(secs=F.lit(self.conf.results.max_lateness_s))
        return F.col("record_time") > F.col("event_time") + bound


def _joined(spans: list[Span]) -> list[Span]:
    joined = spans[:1]
    for span in spans[1:]:
        if _end(joined[-1]) >= span.start:
            joined[-1] = Span(joined[-1].start, max(_end(joined[-1]), _end(span)))
        else:
            joined.append(span)
    while len(joined) > _MOST_SPANS:
        gaps = [(b.start - _end(a), i) for i, (a, b) in enumerate(pairwise(joined))]
        at = min(gaps)[1]
        joined[at : at + 2] = [Span(joined[at].start, joined[at + 1].end)]
    return joined


def _end(span: Span) -> datetime:
    return span.end or datetime.max.replace(tzinfo=UTC)


def _any(conditions: Iterable[str]) -> str:
    return " OR ".join(f"({condition})" for condition in conditions)


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%fZ")
