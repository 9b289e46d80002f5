"""One result to compute, or a part of it: for which times, for which keys, and what it reads."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.compute.result import Result, SplitBy
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of, in_duckdb
from quotaflow.udfs.engine.database import Selection
from quotaflow.udfs.engine.rule import Rule
from quotaflow.udfs.engine.task import Piece

CARRIED = "carried_rows"
"""The relation with the last row of each key before the time that is computed."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One of `parts` parts of the keys of a result."""

    number: int
    parts: int

    def rows(self, split: SplitBy) -> str:
        """SQL of DuckDB for the rows of these keys. Its hash is the same within one version."""
        return self._condition(split.key)

    def facts(self, split: SplitBy) -> str:
        """SQL for the facts that rows of these keys read."""
        other = ""
        if split.or_by:
            there = " AND ".join(f"{each} IS NOT NULL" for each in split.or_by)
            other = f" OR ({there} AND {self._condition(split.or_by)})"
        return f"({self.rows(split)}{other} OR ({split.shared}))"

    def _condition(self, key: tuple[str, ...]) -> str:
        return f"hash({', '.join(key)}) % {self.parts} = {self.number}"


@dataclass(frozen=True, slots=True)
class Computation:
    """A result over time ranges of its facts, and with `keys` only its rows of these.

    Facts that are later than `max_lateness_s` are left out; none are without it. `share` is about
    how many of the facts the rule reads, from 0 to 1.
    """

    result: Result
    ranges: tuple[TimeRange, ...]
    max_lateness_s: int | None = None
    share: float = 1.0
    keys: KeyPart | None = None

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.result.rule.name

    def piece(self) -> Piece:
        """What a task computes. The rule reads the same rows beside any others."""
        return Piece(self._rule(), self.selections(), self._where())

    def facts_read(self) -> TimeRange:
        """The time of the facts that the rule reads."""
        return TimeRange(self.ranges[0].start - self.result.lookback, self.ranges[-1].end)

    def reads(self) -> Iterator[tuple[str, str, TimeRange | None]]:
        """Each relation with its table, and the time of which rows are read; None: all rows."""
        result, facts = self.result, self.facts_read()
        for lookup in result.lookups:
            name = lookup.table.name
            yield name, name, facts if lookup.within_ranges else None
        if not result.reads_all_facts:
            yield result.facts.name, result.facts.name, facts
        if result.carry_s:
            yield CARRIED, result.table.name, self._carried()

    def selections(self) -> dict[str, Selection]:
        """What the rule reads of each relation."""
        result, split = self.result, self.result.split
        read = (TimeRange(each.start - result.lookback, each.end) for each in self.ranges)
        within = any_of(each.condition("event_time", in_duckdb) for each in read)
        in_files = self.facts_read().condition("event_time", in_duckdb)
        selected = {
            lookup.table.name: Selection(within, in_files=in_files)
            if lookup.within_ranges
            else Selection()
            for lookup in result.lookups
        }
        if not result.reads_all_facts:
            keys = self.keys.facts(split) if self.keys else "true"
            conditions = [f"({within})", f"({result.relevant})", self._in_time(), keys]
            where = " AND ".join(conditions)
            selected[result.facts.name] = Selection(where, in_files=in_files)
        if result.carry_s:
            in_files = self._carried().condition("event_time", in_duckdb)
            condition = f"({result.scope}) AND {in_files}"
            if self.keys:
                condition = f"{condition} AND {self.keys.rows(split)}"
            selected[CARRIED] = Selection(condition, last_of=result.carry_key, in_files=in_files)
        return selected

    def _rule(self) -> Rule:
        """The rule, with the time from which it computes rows: `$since`."""
        rule = self.result.rule
        since = self._since().astimezone(UTC).replace(tzinfo=None)
        return replace(rule, parameters={**rule.parameters, "since": since})

    def _where(self) -> str:
        """SQL for the rows that are needed of those that the rule computes."""
        time, split = self.result.rule.time, self.result.split
        within = any_of(each.condition(time, in_duckdb) for each in self.ranges)
        if self.keys is None or not split.overlaps:
            return within
        return f"({within}) AND {self.keys.rows(split)}"

    def _since(self) -> datetime:
        return self.ranges[0].start - timedelta(seconds=self.result.warm_up_s)

    def _carried(self) -> TimeRange:
        """The time whose rows a sequential rule continues from."""
        return TimeRange(self._since() - timedelta(seconds=self.result.carry_s), self._since())

    def _in_time(self) -> str:
        if self.max_lateness_s is None or "record_time" not in self.result.facts.column_names:
            return "true"
        # A fact whose record has no time is in time, as arrivals count it.
        took_us = "epoch_us(record_time) - epoch_us(event_time)"
        return f"coalesce({took_us} <= {self.max_lateness_s * 1_000_000}, true)"
