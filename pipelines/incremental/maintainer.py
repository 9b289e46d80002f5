"""Keeps result tables equal to pure functions of their facts, for any batch boundaries.

A micro-batch of facts affects time buckets. The facts of these buckets, and of the lookback before
them, are read again from the fact table. The rule computes the rows, which replace those in the
result. Rows are never merged by key, because a merge leaves rows whose key no longer exists. So a
late row corrects its bucket, and a replayed batch changes nothing. A fact that is later than
`max_lateness_s` is counted and left to a rebuild. Lateness is a property of the row alone, so the
split into batches does not matter.
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
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of, within_any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class ResultMaintainer:
    """Keeps results that read the same facts up to date, from the stream of these facts."""

    results: tuple[Result, ...]
    conf: Conf

    def arrivals(self, facts: "DataFrame") -> "DataFrame":
        """The buckets that new facts affect in each result: the input of `write`."""
        return arrivals(self.results, facts, self.conf.results.max_lateness_s)

    def write(self, arrived: "DataFrame", batch: Batch) -> None:
        """Recompute and replace the buckets that new facts affect, one result after the other.

        A result whose rule fails is recorded as not up to date. If all rules fail, the batch fails.
        """
        self._update(by_result(arrived), batch, arrived.sparkSession)

    def refresh(self, spark: "SparkSession", batch: Batch) -> None:
        """As `write`, without new facts: lookups may have new rows, or a rule failed."""
        self._update({}, batch, spark)

    def _update(self, arrived: "dict[str, list[Row]]", batch: Batch, spark: "SparkSession") -> None:
        checkpoint = batch.warehouse.checkpoint(batch.job)
        previous = result_state.load(checkpoint)
        states, counts, errors = dict(previous), list[Count](), list[Exception]()
        latest: list[tuple[datetime, str]] = []
        lookup_changes = LookupChanges(spark, batch)
        failed = set[str]()
        for result in self.results:
            name = result.table.name
            affected = affected_buckets(
                result, arrived.get(name, []), lookup_changes, previous.get(name, ResultState())
            )
            time_ranges = lookup_changes.computable(
                result, result.time_ranges(affected.rows_by_bucket, affected.since)
            )
            latest.extend([affected.latest] if affected.latest else [])
            counts.append(Count("in", affected.rows, name))
            counts.append(Count("late", affected.late, name, "past_max_lateness"))
            counts.append(Count("late", affected.rows_before(time_ranges), name, "past_retention"))
            try:
                rows = self._replace(result, spark, time_ranges, batch) if time_ranges else {}
            except spark_errors() as error:
                errors.append(error)
                states[name] = _dirty(
                    affected.state, time_ranges[0].start, failures.one_line(error)
                )
                failed.add(name)
                counts.append(Count("failed", affected.rows, name, type(error).__name__))
                continue
            missed = failed & {context.table.name for context in result.lookups}
            if time_ranges and missed:
                reason = f"it looks up {min(missed)}, which failed"
                states[name] = _dirty(affected.state, time_ranges[0].start, reason)
                failed.add(name)
            else:
                states[name] = replace(affected.state, dirty_since=None, failure=None)
            counts.append(Count("out", sum(rows.values()), name))
        if len(errors) == len(self.results):
            raise errors[0]
        result_state.save(checkpoint, states)
        if latest:
            time, cluster_id = max(latest)
            batch.report(spark, counts, cluster_id, time)

    def rebuild(
        self, batch: Batch, spark: "SparkSession", time_range: TimeRange
    ) -> Counter[str | None]:
        """Compute a time range again with late facts; returns the number of rows by cluster."""
        rows = Counter[str | None]()
        for result in self.results:
            rows.update(self._replace(result, spark, [time_range], batch, late=True))
        return rows

    def _replace(
        self,
        result: Result,
        spark: "SparkSession",
        time_ranges: list[TimeRange],
        batch: Batch,
        *,
        late: bool = False,
    ) -> dict[str | None, int]:
        table = result.table
        since = time_ranges[0].start - timedelta(seconds=result.warm_up_s)
        lookback = timedelta(seconds=result.warm_up_s + result.lookback_s)
        read = [
            TimeRange(time_range.start - lookback, time_range.end) for time_range in time_ranges
        ]
        facts = batch.warehouse.read(spark, result.facts.name).where(within_any(read, "event_time"))
        if not late:
            facts = facts.where(~is_late(facts, self.conf.results.max_lateness_s))
        names = [context.table.name for context in result.lookups]
        place = any_of(
            f"({time_range.date_condition('event_date')} AND {time_range.condition(table.time)})"
            for time_range in time_ranges
        )
        with caching() as cache:
            inputs = RuleInputs(
                facts=result.relevant_facts(facts),
                carried_rows=_carried(result, since, batch, spark),
                since=since,
                lookups={name: batch.warehouse.read(spark, name) for name in names},
                cached=cache,
            )
            rows = result.compute(inputs).where(within_any(time_ranges, table.time))
            kept = cache(rows)
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


def _dirty(state: ResultState, since: datetime, reason: str) -> ResultState:
    return replace(state, dirty_since=since, failure=reason[:_REASON_CHARS])
