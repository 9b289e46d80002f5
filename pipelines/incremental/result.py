"""What a result is: the facts and the context it reads, its rule, and how far that remembers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from quotaflow.pipelines.streaming.time_ranges import TimeRange, merged
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A small table a rule looks things up in; `valid_from`: SQL, from when a row of it matters.

    None where a new row changes nothing that was computed before it came. With `reaches_back` the
    first rows ever matter to what was before them too.
    """

    table: Table
    valid_from: str | None = "event_time"
    reaches_back: bool = False


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """What a rule computes from: its facts, and its context by the names of the tables.

    A sequential rule (`Result.carry_s`) gets each key's last row `before`, and the time `since`
    which rows are asked for; both are None when everything is computed. What a rule reads more
    than once it may `hold`: Spark would plan and compute it anew for each use.
    """

    facts: "DataFrame"
    carried_rows: "DataFrame | None" = None
    since: datetime | None = None
    lookups: "Mapping[str, DataFrame]" = field(default_factory=dict)
    cached: "Callable[[DataFrame], DataFrame]" = lambda frame: frame


@dataclass(frozen=True, slots=True)
class Result:
    """One result table: the facts it reads, the rule, and how far the rule remembers.

    `is_relevant` gives the condition on the facts that the rule needs; without it, all facts.
    `prepare` gives them as the rule reads them, and keeps event_time. `compute` is pure: facts to
    result rows. `lookback_s` is how far before a row its rule reads facts.

    With `carry_s` the rule is sequential: a row needs the last one of its `carry_key` within
    carry_s seconds, so a change runs forward. The rule computes rows from `warm_up_s` earlier on,
    which are not stored. With `runs_forward` a change affects all later rows, and nothing is
    carried: the rule looks up what was before. New rows of `lookups` affect every bucket from when
    they hold. With `lookahead_s` new facts also affect rows that much before them. `scope` is SQL
    that is true for the rows of this result, where another one fills the same table.
    """

    table: Table
    facts: Table
    bucket_s: int
    lookback_s: int
    prepare: "Callable[[DataFrame], DataFrame]"
    compute: "Callable[[RuleInputs], DataFrame]"
    is_relevant: "Callable[[], Column] | None" = None
    carry_s: int = 0
    carry_key: tuple[str, ...] = ()
    warm_up_s: int = 0
    runs_forward: bool = False
    lookups: tuple[LookupTable, ...] = ()
    lookahead_s: int = 0
    scope: str = "true"

    def relevant_facts(self, facts: "DataFrame") -> "DataFrame":
        """The facts the rule reads, as it reads them."""
        return self.prepare(facts.where(self.is_relevant()) if self.is_relevant else facts)

    def time_ranges(
        self, buckets: Iterable[datetime], since: datetime | None = None
    ) -> list[TimeRange]:
        """The spans whose rows may change: these buckets got new facts, all those `since` may."""
        reach = timedelta(seconds=self.bucket_s + self.lookback_s)
        trail = timedelta(seconds=self.lookahead_s)
        affected = [TimeRange(start - trail, start + reach) for start in buckets]
        if since is not None:
            affected.append(TimeRange(self.bucket(since)))
        if affected and (self.carry_s or self.runs_forward):
            return [TimeRange(min(time_range.start for time_range in affected))]
        return merged(affected)

    def computable(self, time_ranges: Iterable[TimeRange], kept_since: datetime) -> list[TimeRange]:
        """What is left of spans where the facts from before `kept_since` are gone.

        A row is computable where all is there that its rule may look back at; a sequential one
        looks back at its own rows.
        """
        first = self.bucket(
            kept_since + timedelta(seconds=self.warm_up_s + self.lookback_s), up=True
        )
        return [
            TimeRange(max(time_range.start, first), time_range.end)
            for time_range in time_ranges
            if time_range.end is None or time_range.end > first
        ]

    def bucket(self, time: datetime, *, up: bool = False) -> datetime:
        """Where the bucket of a time begins; with `up` the first one that begins no earlier."""
        epoch_s = -int(-time.timestamp() // 1) if up else int(time.timestamp())
        past_s = -epoch_s % self.bucket_s if up else -(epoch_s % self.bucket_s)
        return datetime.fromtimestamp(epoch_s + past_s, UTC)
