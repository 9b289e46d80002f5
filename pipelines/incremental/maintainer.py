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
from quotaflow.pipelines.incremental.affected import (
    LookupChanges,
    affected_buckets,
    arrivals,
    by_result,
    is_late,
)
from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.incremental.result_state import ResultState
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.spark.caching import caching
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming.sinks import Batch, Count, rows_by_cluster
from quotaflow.pipelines.streaming.time_ranges import TimeRange, any_of, within_any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class ResultMaintainer:
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
        memories, counts, errors = dict(known), list[Count](), list[Exception]()
        latest: list[tuple[datetime, str]] = []
        news = LookupChanges(spark, batch)
        failed = set[str]()
        for result in self.results:
            name = result.table.name
            by = affected_buckets(result, came.get(name, []), news, known.get(name, ResultState()))
            spans = news.computable(result, result.time_ranges(by.rows_by_bucket, by.since))
            latest.extend([by.latest] if by.latest else [])
            counts.append(Count("in", by.rows, name))
            counts.append(Count("late", by.late, name, "past_max_lateness"))
            counts.append(Count("late", by.rows_before(spans), name, "past_retention"))
            try:
                rows = self._replace(result, spark, spans, batch) if spans else {}
            except spark_errors() as error:
                errors.append(error)
                memories[name] = _dirty(by.state, spans[0].start, failures.one_line(error))
                failed.add(name)
                counts.append(Count("failed", by.rows, name, type(error).__name__))
                continue
            missed = failed & {context.table.name for context in result.lookups}
            if spans and missed:
                why = f"it looks up {min(missed)}, which failed"
                memories[name] = _dirty(by.state, spans[0].start, why)
                failed.add(name)
            else:
                memories[name] = replace(by.state, dirty_since=None, failure=None)
            counts.append(Count("out", sum(rows.values()), name))
        if len(errors) == len(self.results):
            raise errors[0]
        result_state.save(checkpoint, memories)
        if latest:
            time, cluster_id = max(latest)
            batch.report(spark, counts, cluster_id, time)

    def rebuild(
        self, batch: Batch, spark: "SparkSession", time_range: TimeRange
    ) -> Counter[str | None]:
        """Compute a span of the tables anew, late facts included; returns the rows by cluster."""
        rows = Counter[str | None]()
        for result in self.results:
            rows.update(self._replace(result, spark, [time_range], batch, late=True))
        return rows

    def _replace(
        self,
        result: Result,
        spark: "SparkSession",
        spans: list[TimeRange],
        batch: Batch,
        *,
        late: bool = False,
    ) -> dict[str | None, int]:
        table = result.table
        since = spans[0].start - timedelta(seconds=result.warm_up_s)
        lookback = timedelta(seconds=result.warm_up_s + result.lookback_s)
        read = [TimeRange(span.start - lookback, span.end) for span in spans]
        facts = batch.warehouse.read(spark, result.facts.name).where(within_any(read, "event_time"))
        if not late:
            facts = facts.where(~is_late(facts, self.conf.results.max_lateness_s))
        names = [context.table.name for context in result.lookups]
        place = any_of(
            f"({span.date_condition('event_date')} AND {span.condition(table.time)})"
            for span in spans
        )
        with caching() as hold:
            known = RuleInputs(
                facts=result.relevant_facts(facts),
                carried_rows=_carried(result, since, batch, spark),
                since=since,
                lookups={name: batch.warehouse.read(spark, name) for name in names},
                cached=hold,
            )
            rows = result.compute(known).where(within_any(spans, table.time))
            kept = hold(rows)
            batch.recompute(kept, table, f"({result.scope}) AND ({place})")
            return rows_by_cluster(kept)


def _carried(
    result: Result, since: datetime, batch: Batch, spark: "SparkSession"
) -> "DataFrame | None":
    if not result.carry_s:
        return None
    table = result.table
    before = TimeRange(since - timedelta(seconds=result.carry_s), since)
    dates, times = before.date_condition("event_date"), within_any([before], table.time)
    rows = batch.warehouse.read(spark, table.name).where(
        f"({result.scope}) AND {dates} AND {times}"
    )
    last = F.max_by(F.struct(*table.column_names), table.time).alias("last")
    return rows.groupBy(*result.carry_key).agg(last).select("last.*")


def _dirty(memory: ResultState, since: datetime, why: str) -> ResultState:
    return replace(memory, dirty_since=since, failure=why[:_REASON_CHARS])
