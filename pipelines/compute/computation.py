"""One result to compute: its rule, what it reads, and for which times."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of, in_duckdb
from quotaflow.udfs.engine.database import Selection
from quotaflow.udfs.engine.rule import Rule

CARRIED = "carried_rows"
"""The relation with the last row of each key before the time that is computed."""


@dataclass(frozen=True, slots=True)
class Carry:
    """What a sequential rule continues from: the last row of each `key` within `reach` of a time.

    That time is `warm_up` before the rows that are computed; the rule has it as `$since`.
    `scope` is true for the rows of this result in its table.
    """

    key: tuple[str, ...]
    reach: timedelta
    warm_up: timedelta
    scope: str

    def since(self, start: datetime) -> datetime:
        """The time from which the rule computes, for rows that are needed from `start` on."""
        return start - self.warm_up

    def before(self, start: datetime) -> TimeRange:
        """The time whose rows the rule continues from."""
        return TimeRange(self.since(start) - self.reach, self.since(start))


@dataclass(frozen=True, slots=True)
class SplitBy:
    """By which key a result may be split beside time: SQL over columns of its facts.

    A row reads facts of its own `key` only, facts whose `or_by` have the values of its key, and
    facts that are `shared` (SQL): each part reads these. Without a key there is no such split.
    """

    key: tuple[str, ...] = ()
    or_by: tuple[str, ...] = ()
    shared: str = "false"

    @property
    def overlaps(self) -> bool:
        """Whether parts read facts of other keys too. Then the result has the key's columns."""
        return bool(self.or_by) or self.shared != "false"


WHOLE = SplitBy()
"""No key: a row may read any fact of its time."""


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
    """One rule over time ranges of its facts; its rows are those of `table`.

    `lookback` is how far before a row its rule reads facts, and `bucket` the period at whose starts
    the time can be split. `lookups` are tables by name: whether only rows within the ranges are
    read. `relevant` is SQL for the facts that the rule reads. With `max_lateness` later facts are
    left out. With `carry` the rule is sequential. With `reads_all_facts` the relation has all facts
    ever, which the rule looks up. `share` is about how many of the facts are relevant, from 0 to 1.
    """

    rule: Rule
    table: str
    facts: str
    ranges: tuple[TimeRange, ...]
    lookback: timedelta
    bucket: timedelta
    lookups: Mapping[str, bool]
    relevant: str = "true"
    max_lateness: timedelta | None = None
    carry: Carry | None = None
    reads_all_facts: bool = False
    split: SplitBy = WHOLE
    share: float = 1.0

    def rule_over(self, ranges: tuple[TimeRange, ...]) -> Rule:
        """The rule for these ranges, which a sequential one computes from `$since` on."""
        if self.carry is None:
            return self.rule
        since = self.carry.since(ranges[0].start).astimezone(UTC).replace(tzinfo=None)
        return replace(self.rule, parameters={**self.rule.parameters, "since": since})

    def where(self, ranges: tuple[TimeRange, ...], keys: KeyPart | None = None) -> str:
        """SQL for the rows of the result in these ranges, and of these keys."""
        within = any_of(time_range.condition(self.rule.time, in_duckdb) for time_range in ranges)
        if keys is None or not self.split.overlaps:
            return within
        return f"({within}) AND {keys.rows(self.split)}"

    def selections(
        self, ranges: tuple[TimeRange, ...], keys: KeyPart | None = None
    ) -> dict[str, Selection]:
        """What the rule reads of each relation for these ranges, and for these keys."""
        of_keys = keys.facts(self.split) if keys else "true"
        read = tuple(TimeRange(r.start - self.lookback, r.end) for r in ranges)
        within = any_of(r.condition("event_time", in_duckdb) for r in read)
        selected = {
            name: Selection(within if is_within else "true")
            for name, is_within in self.lookups.items()
        }
        if not self.reads_all_facts:
            conditions = [f"({within})", f"({self.relevant})", self._in_time(), of_keys]
            selected[self.facts] = Selection(" AND ".join(conditions))
        if self.carry is not None:
            before = self.carry.before(ranges[0].start)
            condition = f"({self.carry.scope}) AND {before.condition('event_time', in_duckdb)}"
            if keys:
                condition = f"{condition} AND {keys.rows(self.split)}"
            selected[CARRIED] = Selection(condition, last_of=self.carry.key)
        return selected

    def _in_time(self) -> str:
        if self.max_lateness is None:
            return "true"
        microseconds = self.max_lateness // timedelta(microseconds=1)
        # A fact whose record has no time is in time, as arrivals count it.
        took_us = "epoch_us(record_time) - epoch_us(event_time)"
        return f"coalesce({took_us} <= {microseconds}, true)"
