"""Keeps result tables equal to pure functions of their facts, for any batch boundaries.

A micro-batch of facts affects time buckets. The facts of these buckets, and of the lookback before
them, are read again from the fact table. The rule computes the rows, which replace those in the
result. Rows are never merged by key, because a merge leaves rows whose key no longer exists. So a
late row corrects its bucket, and a replayed batch changes nothing. A fact that is later than
`max_lateness_s` is counted and left to a rebuild. Lateness is a property of the row alone, so the
split into batches does not matter.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from graphlib import TopologicalSorter
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.compute.affected import (
    AffectedBuckets,
    Arrival,
    affected_buckets,
    arrivals,
    by_result,
)
from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.engine import Engine, RuleError, spark_engine
from quotaflow.pipelines.compute.late_names import LateNames
from quotaflow.pipelines.compute.lookup_changes import LookupChanges
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.compute.result_state import ResultState
from quotaflow.pipelines.config import ResultsSection
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, merged
from quotaflow.pipelines.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class ResultMaintainer:
    """Keeps results that read the same facts up to date, from the stream of these facts."""

    results: tuple[Result, ...]
    conf: ResultsSection
    open_engine: "Callable[[SparkSession, Warehouse, int], Engine]" = spark_engine

    def arrivals(self, facts: "DataFrame") -> "DataFrame":
        """The buckets that new facts affect in each result: the input of `write`."""
        return arrivals(self.results, facts, self.conf.max_lateness_s)

    def write(self, arrived: "DataFrame", batch: Batch) -> None:
        """Recompute and replace the buckets that new facts affect.

        A result whose rule fails is recorded as not up to date. If all rules fail, the batch fails.
        """
        self.update(by_result(arrived.toArrow()), batch, arrived.sparkSession)

    def refresh(self, spark: "SparkSession", batch: Batch) -> None:
        """As `write`, without new facts: lookups may have new rows, or a rule failed."""
        self.update({}, batch, spark)

    def update(
        self, arrived: Mapping[str, list[Arrival]], batch: Batch, spark: "SparkSession"
    ) -> None:
        """Recompute and replace what these arrivals, and new rows of lookup tables, affect."""
        checkpoint = batch.warehouse.checkpoint(batch.job)
        previous = result_state.load(checkpoint)
        lookup_changes = LookupChanges.open(spark, batch)
        update = _Update({}, dict(previous), [], [])
        needed = dict[str, list[TimeRange]]()
        for result in self.results:
            name = result.table.name
            affected = affected_buckets(
                result, arrived.get(name, []), lookup_changes, previous.get(name, ResultState())
            )
            update.affected[name] = affected
            needed[name] = lookup_changes.computable(
                result, result.time_ranges(affected.rows_by_bucket, affected.since)
            )
            update.count_arrived(name, affected, needed[name])

        def add_named(level: Sequence[Result]) -> None:
            update.add_named(level, needed, lookup_changes)

        computed = self._compute(needed, batch, spark, before=add_named, shares=update.shares())
        for result in self.results:
            name = result.table.name
            update.finish(result, needed[name], computed.get(name, Outcome()))
        if len(update.errors) == len(self.results):
            raise update.errors[0]
        result_state.save(checkpoint, update.states)
        if latest := [each.latest for each in update.affected.values() if each.latest]:
            time, cluster_id = max(latest)
            batch.report(lambda: spark, update.counts, cluster_id, time)

    def rebuild(
        self, batch: Batch, spark: "SparkSession", time_range: TimeRange
    ) -> Counter[str | None]:
        """Compute a time range again with late facts; returns the number of rows by cluster.

        Raises RuleError.
        """
        rows = Counter[str | None]()
        needed = {result.table.name: [time_range] for result in self.results}
        for outcome in self._compute(needed, batch, spark, with_late_facts=True).values():
            if outcome.error:
                raise outcome.error
            rows.update(outcome.rows)
        return rows

    def _compute(
        self,
        needed: Mapping[str, list[TimeRange]],
        batch: Batch,
        spark: "SparkSession",
        *,
        with_late_facts: bool = False,
        before: Callable[[Sequence[Result]], None] = lambda _: None,
        shares: Mapping[str, float] = MappingProxyType({}),
    ) -> dict[str, "Outcome"]:
        """Compute and replace the rows of the needed ranges; what came of it, by result.

        `before` may add ranges for the results of a level, after the levels before it are written.
        `shares` say about how many of the facts a result reads; all, if it has none.
        """
        lateness_s = None if with_late_facts else self.conf.max_lateness_s
        engine = self.open_engine(spark, batch.warehouse, self.conf.task_memory_mb)
        outcomes: dict[str, Outcome] = {}
        for level in levels(self.results):
            before(level)
            computations = [
                Computation(result, tuple(ranges), lateness_s, shares.get(result.table.name, 1.0))
                for result in level
                if (ranges := needed[result.table.name])
            ]
            for computed in engine.run(computations) if computations else ():
                result = computed.result
                outcome = outcomes.setdefault(result.table.name, Outcome())
                if computed.error:
                    outcome.error = computed.error
                    continue
                replaced = Replaced(result.stored(computed.ranges), result.scope)
                row_writer.replace(
                    lambda: spark, batch.warehouse, result.table, computed.rows, replaced
                )
                outcome.add(computed.rows)
        return outcomes


@dataclass(slots=True)
class Outcome:
    """What came of computing one result: its rows by cluster, or an error."""

    rows: Counter[str | None] = field(default_factory=Counter)
    unnamed: int = 0
    error: RuleError | None = None

    def add(self, rows: pa.Table) -> None:
        """Count rows by their cluster, under None in a table without clusters; and ids of topics
        without a name.
        """
        if {"topic", "topic_id"} <= set(rows.column_names):
            nameless = pc.and_(pc.is_null(rows["topic"]), pc.is_valid(rows["topic_id"]))
            self.unnamed += pc.sum(nameless).as_py() or 0
        if "cluster_id" not in rows.column_names:
            self.rows[None] += rows.num_rows
            return
        for each in rows["cluster_id"].value_counts().to_pylist():
            self.rows[each["values"]] += each["counts"]


@dataclass(slots=True)
class _Update:
    """What one batch does to all results: their states, their counts, and their errors."""

    affected: dict[str, AffectedBuckets]
    states: dict[str, ResultState]
    counts: list[Count]
    errors: list[RuleError]
    failed: set[str] = field(default_factory=set)
    names: LateNames | None = None

    def count_arrived(self, name: str, affected: AffectedBuckets, needed: list[TimeRange]) -> None:
        self.counts += [
            Count("in", affected.rows, name),
            Count("late", affected.late, name, "past_max_lateness"),
            Count("late", affected.rows_before(needed), name, "past_retention"),
        ]

    def shares(self) -> dict[str, float]:
        """About how many of the new facts each result reads, compared with the others."""
        most = max(each.rows for each in self.affected.values())
        return {name: each.rows / most for name, each in self.affected.items() if each.rows}

    def add_named(
        self,
        level: Sequence[Result],
        needed: dict[str, list[TimeRange]],
        lookup_changes: LookupChanges,
    ) -> None:
        """Add the time of rows without the name of a topic that has one now."""
        for result in level:
            if not result.unnamed:
                continue
            if self.names is None:
                self.names = lookup_changes.late_names()
            name = result.table.name
            affected = self.affected[name]
            if affected.state.names_seen != self.names.digest:
                buckets = {result.bucket(time) for time in self.names.times(result)}
                ranges = lookup_changes.computable(result, result.time_ranges(buckets))
                needed[name] = merged([*needed[name], *ranges])
            state = replace(affected.state, names_seen=self.names.digest)
            self.affected[name] = replace(affected, state=state)

    def finish(self, result: Result, needed: list[TimeRange], outcome: Outcome) -> None:
        name = result.table.name
        state = self.affected[name].state
        if outcome.error:
            self.errors.append(outcome.error)
            self.failed.add(name)
            reason = failures.one_line(outcome.error)
            self.states[name] = _dirty(state, needed[0].start, reason)
            rows = self.affected[name].rows
            self.counts.append(Count("failed", rows, name, type(outcome.error).__name__))
            return
        missed = self.failed & {lookup.table.name for lookup in result.lookups}
        if needed and missed:
            reason = f"it looks up {min(missed)}, which failed"
            self.states[name] = _dirty(state, needed[0].start, reason)
            self.failed.add(name)
        else:
            self.states[name] = replace(state, dirty_since=None, failure=None)
        self.counts += [
            Count("out", outcome.rows.total(), name),
            Count("doubtful", outcome.unnamed, name, "topic_without_name"),
        ]


def levels(results: Sequence[Result]) -> list[list[Result]]:
    """Results in groups: each looks up only tables of other jobs and of the groups before it."""
    by_name = {result.table.name: result for result in results}
    reads = {
        name: {lookup.table.name for lookup in result.lookups} & set(by_name) - {name}
        for name, result in by_name.items()
    }
    sorter = TopologicalSorter(reads)
    sorter.prepare()
    groups = []
    while sorter.is_active():
        ready = set(sorter.get_ready())
        groups.append([result for result in results if result.table.name in ready])
        sorter.done(*ready)
    return groups


def _dirty(state: ResultState, since: datetime, reason: str) -> ResultState:
    return replace(state, dirty_since=since, failure=reason[:_REASON_CHARS])
