"""Keeps result tables equal to pure functions of their facts, whatever the batch boundaries.

A micro-batch of facts touches time buckets; those, and what a rule remembers before them, are
read again from the fact table, computed, and replaced in the result (never merged by key: that
would leave rows whose key vanished). So a late row corrects what it belongs to and a replayed
batch changes nothing. A fact shipped later than `max_lateness` is counted and left to a rebuild:
lateness is a property of the row alone, so the split into batches cannot matter.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from quotaflow.pipelines import result_memory
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.held import held
from quotaflow.pipelines.result_memory import Memory
from quotaflow.pipelines.results.result import Known, Result
from quotaflow.pipelines.sinks import Batch, Count
from quotaflow.pipelines.spans import EVER, Span, any_of
from quotaflow.pipelines.spark_errors import spark_errors
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REASON_CHARS = 300
_EVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class _Touched:
    """What a batch means to one result: rows that came, buckets, and what is remembered by then."""

    rows: int = 0
    late: int = 0
    buckets: tuple[datetime, ...] = ()
    since: datetime | None = None
    latest: tuple[datetime, str] | None = None
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps results that read the same facts up to date from the stream of those."""

    results: tuple[Result, ...]
    conf: Conf

    def write(self, facts: "DataFrame", batch: Batch) -> None:
        """Recompute and replace what these new facts touch, in one result after the other.

        A result whose rule fails is remembered as not up to date; when all fail, the batch does.
        """
        checkpoint = batch.warehouse.checkpoint(batch.job)
        known = result_memory.load(checkpoint)
        memories, counts, failures = dict(known), list[Count](), list[Exception]()
        latest: list[tuple[datetime, str]] = []
        buckets, news = self._buckets(facts), _News(facts.sparkSession, batch)
        for result in self.results:
            name = result.table.name
            touched = _touched(result, buckets.get(name, []), news, known.get(name, Memory()))
            spans = result.spans(touched.buckets, touched.since)
            latest.extend([touched.latest] if touched.latest else [])
            counts.append(Count("in", touched.rows, name))
            counts.append(Count("late", touched.late, name, "past_max_lateness"))
            try:
                written = self._replace(result, facts, spans, batch) if spans else 0
            except spark_errors() as error:
                failures.append(error)
                memories[name] = _dirty(touched.memory, spans[0].start, error)
                counts.append(Count("failed", touched.rows, name, type(error).__name__))
                continue
            memories[name] = replace(touched.memory, dirty_since=None, failure=None)
            counts.append(Count("out", written, name))
        if len(failures) == len(self.results):
            raise failures[0]
        result_memory.save(checkpoint, memories)
        if latest:
            time, cluster_id = max(latest)
            batch.report(facts.sparkSession, counts, cluster_id, time)

    def refresh(self, spark: "SparkSession", batch: Batch) -> None:
        """As `write` when no facts came: what rules look up may be new, or one may have failed."""
        facts = batch.warehouse.read(spark, self.results[0].facts.name)
        self.write(facts.where(F.lit(False)), batch)

    def rebuild(self, batch: Batch, session_of: "DataFrame") -> int:
        """Compute the whole tables anew, late facts included; returns the number of rows."""
        return sum(self._replace(r, session_of, [EVER], batch, late=True) for r in self.results)

    def _buckets(self, facts: "DataFrame") -> dict[str, list[Row]]:
        """What came for each result, by its name, counted by bucket; all in one pass."""
        came = (
            result.relevant(facts)
            .withColumn("is_late", self._is_late())
            .select(
                F.lit(result.table.name).alias("result"),
                *("cluster_id", "event_time", "is_late"),
                F.window("event_time", f"{result.bucket_s} seconds")["start"].alias("start"),
            )
            for result in self.results
        )
        rows = (
            reduce(DataFrame.union, came)
            # By cluster too: Spark would sort, not hash, to find the greatest of texts.
            .groupBy(
                *("result", "cluster_id", "is_late"),
                F.when(~F.col("is_late"), F.col("start")).alias("bucket"),
            )
            .agg(F.count(F.lit(1)).alias("rows"), F.max("event_time").alias("latest"))
            .collect()
        )
        by_result: dict[str, list[Row]] = {}
        for row in rows:
            by_result.setdefault(row["result"], []).append(row)
        return by_result

    def _replace(
        self,
        result: Result,
        facts: "DataFrame",
        spans: list[Span],
        batch: Batch,
        *,
        late: bool = False,
    ) -> int:
        spark, table = facts.sparkSession, result.table
        since = spans[0].start - timedelta(seconds=result.warm_up_s)
        lookback = timedelta(seconds=result.warm_up_s + result.lookback_s)
        read = [Span(span.start - lookback, span.end) for span in spans]
        seen = result.relevant(
            batch.warehouse.read(spark, result.facts.name).where(
                any_of(span.holds("event_time") for span in read)
            )
        )
        if not late:
            seen = seen.where(~self._is_late())
        names = [context.table.name for context in result.context]
        known = Known(
            facts=seen,
            before=_carried(result, since, batch, spark),
            since=since,
            context={name: batch.warehouse.read(spark, name) for name in names},
        )
        rows = result.compute(known).where(any_of(span.holds(table.time) for span in spans))
        place = any_of(
            f"({span.holds_date('event_date')} AND {span.holds(table.time)})" for span in spans
        )
        with held(rows) as kept:
            batch.replace(kept, table, f"({result.scope}) AND ({place})")
            return kept.count()

    def _is_late(self) -> Column:
        bound = F.make_dt_interval(secs=F.lit(self.conf.results.max_lateness_s))
        return F.col("record_time") > F.col("event_time") + bound


def _touched(result: Result, rows: list[Row], news: "_News", memory: Memory) -> _Touched:
    since, seen, latest = news.of(result, memory)
    latest.extend((_utc(row["latest"]), row["cluster_id"]) for row in rows)
    sinces = [time for time in (since, memory.dirty_since) if time]
    return _Touched(
        rows=sum(row["rows"] for row in rows),
        late=sum(row["rows"] for row in rows if row["is_late"]),
        buckets=tuple(_utc(row["bucket"]) for row in rows if row["bucket"]),
        since=min(sinces, default=None),
        latest=max(latest, default=None),
        memory=replace(memory, context_seen=seen),
    )


@dataclass(frozen=True, slots=True)
class _News:
    """What came to the tables that results look things up in; each is asked once per batch."""

    spark: "SparkSession"
    batch: Batch
    _asked: dict[tuple[str, str, datetime | None], Row] = field(default_factory=dict)

    def of(
        self, result: Result, memory: Memory
    ) -> tuple[datetime | None, dict[str, datetime], list[tuple[datetime, str]]]:
        """Since when new rows of a context hold, what was seen of it by now, and the newest row."""
        sinces, seen, latest = list[datetime](), dict(memory.context_seen), []
        for context in result.context:
            if context.valid_from is None:
                continue
            name = context.table.name
            row = self._newest(context.table, context.valid_from, seen.get(name))
            if row["newest"] is None:
                continue
            # A query that begins has computed nothing yet that could be older than its context.
            if name in seen or self.batch.batch_id:
                is_first = context.reaches_back and name not in seen
                sinces.append(_EVER if is_first else _utc(row["since"]))
                latest.append((_utc(row["newest"]), row["cluster_id"]))
            seen[name] = _utc(row["newest"])
        return min(sinces, default=None), seen, latest

    def _newest(self, table: Table, valid_from: str, seen: datetime | None) -> Row:
        key = table.name, valid_from, seen
        if key not in self._asked:
            rows = self.batch.warehouse.read(self.spark, table.name)
            # Asked before a result that reads it is computed: what comes meanwhile is new to the
            # next batch.
            if seen is not None:
                rows = rows.where(F.col(table.time) > F.lit(seen))
            self._asked[key] = rows.agg(
                F.max(table.time).alias("newest"),
                F.min(F.expr(valid_from)).alias("since"),
                F.max_by("cluster_id", table.time).alias("cluster_id"),
            ).collect()[0]
        return self._asked[key]


def _carried(
    result: Result, since: datetime, batch: Batch, spark: "SparkSession"
) -> "DataFrame | None":
    if not result.carry_s:
        return None
    table = result.table
    before = Span(since - timedelta(seconds=result.carry_s), since)
    rows = batch.warehouse.read(spark, table.name).where(
        f"({result.scope}) AND {before.holds_date('event_date')} AND {before.holds(table.time)}"
    )
    last = F.max_by(F.struct(*table.column_names), table.time).alias("last")
    return rows.groupBy(*result.carry_key).agg(last).select("last.*")


def _dirty(memory: Memory, since: datetime, error: Exception) -> Memory:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = (lines or [type(error).__name__])[0][:_REASON_CHARS]
    return replace(memory, dirty_since=since, failure=reason)


def _utc(time: datetime) -> datetime:
    # Collected TIMESTAMPs come back in this machine's zone; without one they would be misread.
    return time.astimezone(UTC)
