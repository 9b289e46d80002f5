"""Keeps result tables equal to pure functions of their facts, whatever the batch boundaries.

A micro-batch of facts touches time buckets; those, and what a rule remembers before them, are
read again from the fact table, computed, and replaced in the result (never merged by key: that
would leave rows whose key vanished). So a late row corrects what it belongs to and a replayed
batch changes nothing. A fact shipped later than `max_lateness` is counted and left to a rebuild:
lateness is a property of the row alone, so the split into batches cannot matter.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.incremental import result_state
from quotaflow.pipelines.incremental.affected import News, arrivals, by_result, is_late, touched
from quotaflow.pipelines.incremental.result import Known, Result
from quotaflow.pipelines.incremental.result_state import Memory
from quotaflow.pipelines.spark import failures as failure
from quotaflow.pipelines.spark.caching import holding
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming.sinks import Batch, Count, rows_by_cluster
from quotaflow.pipelines.streaming.time_ranges import Span, any_of, within

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps results that read the same facts up to date from the stream of those."""

    results: tuple[Result, ...]
    conf: Conf

    def arrivals(self, facts: "DataFrame") -> "DataFrame":
        """What new facts mean to each result: what `write` takes."""
        return arrivals(self.results, facts, self.conf.results.max_lateness_s)

    def write(self, arrived: "DataFrame", batch: Batch) -> None:
        """Recompute and replace what new facts touch, in one result after the other.

        A result whose rule fails is remembered as not up to date; when all fail, the batch does.
        """
        self._update(by_result(arrived), batch, arrived.sparkSession)

    def refresh(self, spark: "SparkSession", batch: Batch) -> None:
        """As `write` when no facts came: what rules look up may be new, or one may have failed."""
        self._update({}, batch, spark)

    def _update(self, came: "dict[str, list[Row]]", batch: Batch, spark: "SparkSession") -> None:
        checkpoint = batch.warehouse.checkpoint(batch.job)
        known = result_state.load(checkpoint)
        memories, counts, failures = dict(known), list[Count](), list[Exception]()
        latest: list[tuple[datetime, str]] = []
        news = News(spark, batch)
        failed = set[str]()
        for result in self.results:
            name = result.table.name
            by = touched(result, came.get(name, []), news, known.get(name, Memory()))
            spans = news.computable(result, result.spans(by.in_buckets, by.since))
            latest.extend([by.latest] if by.latest else [])
            counts.append(Count("in", by.rows, name))
            counts.append(Count("late", by.late, name, "past_max_lateness"))
            counts.append(Count("late", by.rows_before(spans), name, "past_retention"))
            try:
                rows = self._replace(result, spark, spans, batch) if spans else {}
            except spark_errors() as error:
                failures.append(error)
                memories[name] = _dirty(by.memory, spans[0].start, failure.line(error))
                failed.add(name)
                counts.append(Count("failed", by.rows, name, type(error).__name__))
                continue
            missed = failed & {context.table.name for context in result.context}
            if spans and missed:
                why = f"it looks up {min(missed)}, which failed"
                memories[name] = _dirty(by.memory, spans[0].start, why)
                failed.add(name)
            else:
                memories[name] = replace(by.memory, dirty_since=None, failure=None)
            counts.append(Count("out", sum(rows.values()), name))
        if len(failures) == len(self.results):
            raise failures[0]
        result_state.save(checkpoint, memories)
        if latest:
            time, cluster_id = max(latest)
            batch.report(spark, counts, cluster_id, time)

    def rebuild(self, batch: Batch, spark: "SparkSession", span: Span) -> Counter[str | None]:
        """Compute a span of the tables anew, late facts included; returns the rows by cluster."""
        rows = Counter[str | None]()
        for result in self.results:
            rows.update(self._replace(result, spark, [span], batch, late=True))
        return rows

    def _replace(
        self,
        result: Result,
        spark: "SparkSession",
        spans: list[Span],
        batch: Batch,
        *,
        late: bool = False,
    ) -> dict[str | None, int]:
        table = result.table
        since = spans[0].start - timedelta(seconds=result.warm_up_s)
        lookback = timedelta(seconds=result.warm_up_s + result.lookback_s)
        read = [Span(span.start - lookback, span.end) for span in spans]
        facts = batch.warehouse.read(spark, result.facts.name).where(within(read, "event_time"))
        if not late:
            facts = facts.where(~is_late(facts, self.conf.results.max_lateness_s))
        names = [context.table.name for context in result.context]
        place = any_of(
            f"({span.holds_date('event_date')} AND {span.holds(table.time)})" for span in spans
        )
        with holding() as hold:
            known = Known(
                facts=result.relevant(facts),
                before=_carried(result, since, batch, spark),
                since=since,
                context={name: batch.warehouse.read(spark, name) for name in names},
                hold=hold,
            )
            rows = result.compute(known).where(within(spans, table.time))
            kept = hold(rows)
            batch.recompute(kept, table, f"({result.scope}) AND ({place})")
            return rows_by_cluster(kept)


def _carried(
    result: Result, since: datetime, batch: Batch, spark: "SparkSession"
) -> "DataFrame | None":
    if not result.carry_s:
        return None
    table = result.table
    before = Span(since - timedelta(seconds=result.carry_s), since)
    rows = batch.warehouse.read(spark, table.name).where(
        f"({result.scope}) AND {before.holds_date('event_date')} AND {within([before], table.time)}"
    )
    last = F.max_by(F.struct(*table.column_names), table.time).alias("last")
    return rows.groupBy(*result.carry_key).agg(last).select("last.*")


def _dirty(memory: Memory, since: datetime, why: str) -> Memory:
    return replace(memory, dirty_since=since, failure=why[:_REASON_CHARS])
