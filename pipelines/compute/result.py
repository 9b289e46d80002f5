"""What a result is: the facts and lookup tables it reads, its rule, and the rule's lookback."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.warehouse.time_ranges import TimeRange, merged, sliced
from quotaflow.schemas.table import Table
from quotaflow.udfs.engine.rule import Rule

_HOUR_S = 3_600


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A small table that a rule joins with.

    `valid_from` is SQL for the time from which a new row changes results; None if a new row changes
    nothing that is computed already. With `reaches_back` the first rows ever are valid for all time
    before them too. With `within_ranges` the rule reads only rows of the time that it computes.
    """

    table: Table
    valid_from: str | None = "event_time"
    reaches_back: bool = False
    within_ranges: bool = False


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Rows of a result that have the id of a topic without its name.

    `where` is SQL of Spark and DuckDB that such rows meet, `topic_ids` SQL of DuckDB for their ids.
    """

    table: Table
    where: str = "topic IS NULL AND topic_id IS NOT NULL"
    topic_ids: str = "[topic_id]"


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
class Result:
    """One result table: the facts it reads, the rule, and the rule's lookback.

    `relevant` is SQL of DuckDB, over flat columns of the facts, for those that the rule reads.
    `lookback_s` is how far before a row its rule reads facts.

    With `carry_s` the rule is sequential: a row needs the last row of its `carry_key` within
    carry_s seconds, so a change affects later rows. The rule computes rows from `warm_up_s` earlier
    on, which are not stored. With `runs_forward` a change affects all later rows, and no rows are
    carried: the rule reads a lookup table instead. New rows of `lookups` affect every bucket from
    the time they are valid. `split` is the key by which tasks may share its rows, beside time.
    With `lookahead_s` new facts also affect rows that much before them.
    `scope` is SQL that is true for the rows of this result, if another result fills the same table.
    A name that is learnt later for rows of `unnamed` affects their buckets.
    With `rolls_up` upkeep replaces rows older than a day by rows of whole minutes and hours, so old
    rows are computed by the hour.
    """

    table: Table
    facts: Table
    bucket_s: int
    lookback_s: int
    rule: Rule
    relevant: str = "true"
    carry_s: int = 0
    carry_key: tuple[str, ...] = ()
    warm_up_s: int = 0
    runs_forward: bool = False
    lookups: tuple[LookupTable, ...] = ()
    lookahead_s: int = 0
    split: SplitBy = WHOLE
    scope: str = "true"
    unnamed: tuple[Unnamed, ...] = ()
    rolls_up: bool = False

    @property
    def lookback(self) -> timedelta:
        """How far before a row the facts are that it needs, with those of its warm-up."""
        return timedelta(seconds=self.warm_up_s + self.lookback_s)

    @property
    def reads_all_facts(self) -> bool:
        """Whether the rule looks up all facts ever."""
        return self.facts in {lookup.table for lookup in self.lookups}

    def time_ranges(
        self, buckets: Iterable[datetime], since: datetime | None = None
    ) -> list[TimeRange]:
        """Time ranges whose rows may change: of buckets with new facts, and all `since` a time."""
        reach = timedelta(seconds=self.bucket_s + self.lookback_s)
        trail = timedelta(seconds=self.lookahead_s)
        affected = [TimeRange(start - trail, start + reach) for start in buckets]
        if since is not None:
            affected.append(TimeRange(self.bucket(since)))
        if affected and (self.carry_s or self.runs_forward):
            return [TimeRange(min(time_range.start for time_range in affected))]
        return merged(affected)

    def computable(self, time_ranges: Iterable[TimeRange], kept_since: datetime) -> list[TimeRange]:
        """The parts of time ranges that can be computed if facts before `kept_since` are removed.

        A row can be computed if all facts of its lookback and warm-up are there. A sequential rule
        continues from its own rows.
        """
        first = self.bucket(kept_since + self.lookback, up=True)
        if self.rolls_up:
            first = self._next_hour(first)
        return [
            TimeRange(max(time_range.start, first), time_range.end)
            for time_range in time_ranges
            if time_range.end is None or time_range.end > first
        ]

    def slices(self, time_range: TimeRange, now: datetime, size_s: int) -> list[TimeRange]:
        """About `size_s` long ranges that cover a range, of whole buckets or hours."""
        whole_s = _HOUR_S if self.rolls_up else self.bucket_s
        size = timedelta(seconds=max(size_s // whole_s, 1) * whole_s)
        if not self.rolls_up:
            return sliced(time_range.start, time_range.end, now, size)
        start = _floored(time_range.start, _HOUR_S)
        return [self._whole(each) for each in sliced(start, time_range.end, now, size)]

    def whole_hours(self, time_ranges: Iterable[TimeRange]) -> list[TimeRange]:
        """The ranges of all buckets that start in the hours of these ranges.

        An hour may have one row for all its buckets. So its buckets are computed together.
        """
        return merged(self._whole(each) for each in time_ranges)

    def stored(self, time_ranges: Iterable[TimeRange]) -> list[TimeRange]:
        """The time of the stored rows that rows of these ranges replace.

        A row of an hour has the start of the hour as its time, which is before its first bucket.
        """
        if not self.rolls_up:
            return list(time_ranges)
        return [
            TimeRange(self._row_time(each.start), each.end and self._row_time(each.end))
            for each in time_ranges
        ]

    def _whole(self, time_range: TimeRange) -> TimeRange:
        first = self.bucket(_floored(time_range.start, _HOUR_S), up=True)
        return TimeRange(first, None if time_range.end is None else self._next_hour(time_range.end))

    def _row_time(self, start: datetime) -> datetime:
        hour = _floored(start, _HOUR_S)
        return hour if start == self.bucket(hour, up=True) else start

    def _next_hour(self, time: datetime) -> datetime:
        """The first bucket of an hour that starts no earlier."""
        hour = _floored(time, _HOUR_S)
        first = self.bucket(hour, up=True)
        return first if time <= first else self.bucket(hour + timedelta(seconds=_HOUR_S), up=True)

    def bucket(self, time: datetime, *, up: bool = False) -> datetime:
        """The start of a time's bucket; with `up`, of the first bucket that starts no earlier."""
        epoch_s = -int(-time.timestamp() // 1) if up else int(time.timestamp())
        past_s = -epoch_s % self.bucket_s if up else -(epoch_s % self.bucket_s)
        return datetime.fromtimestamp(epoch_s + past_s, UTC)


def _floored(time: datetime, period_s: int) -> datetime:
    epoch_s = int(time.timestamp())
    return datetime.fromtimestamp(epoch_s - epoch_s % period_s, UTC)
