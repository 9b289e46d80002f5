"""What an area may ask: the rows of one cluster from a time on, all or those of one name."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from quotaflow.pipelines.areas.question import (
    IN_DAY,
    NO_NAME,
    WITHIN,
    Question,
    Row,
    any_of,
    filled,
)
from quotaflow.pipelines.errors import NeverMadeError
from quotaflow.pipelines.warehouse.once import Once
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.schemas.levels import ADMIN_API, SAMPLED_LOG, TELEMETRY, WHOLE_LOG
from quotaflow.udfs.rules.principal_name import bare

if TYPE_CHECKING:
    from quotaflow.pipelines.areas.subject import Subject
    from quotaflow.pipelines.config import Conf
    from quotaflow.pipelines.warehouse.reader import Reader

MAX_ROWS = 20
"""Rows of a question about a cluster, the most important first."""
MAX_ROWS_OF_NAME = 200
"""Rows of a question about a name: a client can have any number of client ids."""
MAX_POINTS = 120
"""A line of a chart has at most this many points; a longer time gets longer steps."""
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
FACTS_MARGIN, RESULTS_MARGIN = timedelta(minutes=15), timedelta(hours=1)
"""What views need before the time asked about: clients push each five minutes, and a counter grew
since the push before."""

_SHARED = timedelta(minutes=5)
_STEPS_S = (1, 5, 10, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400)
_WEIGHTED = """
SELECT 1 FROM requests
WHERE cluster_id = {cluster} AND event_time >= {last_hour} AND weight > 1 LIMIT 1
"""
_LAST = "SELECT max({time}) AS last FROM {table} WHERE cluster_id = {{cluster}}"
_ANY = "SELECT 1 FROM {table} WHERE cluster_id = {{cluster}} AND event_time >= {start} LIMIT 1"
_EXTENT = """
SELECT min({time}) AS first, max({time}) AS last FROM {table}
WHERE cluster_id = {{cluster}} AND {time} >= {{since}}
"""


@dataclass(frozen=True, slots=True)
class About:
    """The name that is asked about.

    `principals` are those of the subject and of its clients. `topics` are those that it names, or
    that its clients used on the last day.
    """

    subject: "Subject"
    principals: tuple[str, ...]
    topics: tuple[str, ...] = ()
    is_recent: bool = True
    """The end of the scope is within the last day of the cluster, which some views are about."""
    is_past: bool = False
    """The cluster has events of an hour later and more: its configs may be others by now."""

    @property
    def conditions(self) -> dict[str, str]:
        """SQL conditions for rows of the name, by their names in questions."""
        users = sorted({bare(principal) for principal in self.principals})
        client_ids = {*self.subject.client_ids, *(each for _, each in self.subject.clients if each)}
        return {
            "is_client": self.subject.is_client,
            "is_program": self.subject.is_program,
            "is_principal": any_of("principal", self.principals),
            "is_user": any_of('"user"', users),
            "is_entity_user": any_of("entity_name", users),
            "is_entity_client": any_of("entity_name", sorted(client_ids)),
            "is_client_id": any_of("client_id", sorted(client_ids)),
            "is_entity_ip": any_of("entity_name", self.subject.addresses),
            "is_ip": any_of("ip", self.subject.addresses),
            "is_address": any_of("client_address", self.subject.addresses),
            "is_group": any_of("group_id", self.subject.groups),
            "is_topic": any_of("topic", self.topics),
            "is_named_topic": any_of("topic", self.subject.topics),
            "is_entity_topic": any_of("entity_name", self.topics),
            "is_named_broker": any_of("broker_id", self.subject.brokers),
            "is_entity_broker": any_of("entity_name", [*map(str, self.subject.brokers)]),
            "is_move_of_broker": (
                f"({any_of('replica_id', self.subject.brokers)} "
                f"OR {any_of('leader_id', self.subject.brokers)})"
            ),
        }


@dataclass(frozen=True, slots=True)
class Scope:
    """A cluster's tables from `since`; `until` is the time of the cluster's newest event.

    About a name, rows end before `until`. Without a cluster_id (None) they are those of the only
    cluster. `conf` has the policy of plans.
    """

    reader: "Reader"
    cluster_id: str | None
    since: datetime
    until: datetime
    now: datetime
    conf: "Conf"
    about: About | None = None
    is_brief: bool = False
    """Only problems are asked for."""
    _answers: Once[str, list[Row]] = field(
        default_factory=Once, init=False, compare=False, repr=False
    )
    _filled: Once[str, dict[str, str]] = field(
        default_factory=Once, init=False, compare=False, repr=False
    )

    def gather(self, names: Iterable[str]) -> None:
        """Get ready for questions about these tables and views (`Reader.gather`)."""
        self.reader.gather(names, self._views_since)

    def ask(self, question: Question) -> list[Row]:
        """The first rows of a question; about a cluster each has the number of all.

        Raises as `rows`.
        """
        return self.rows(question.first_rows if self.about else question.counted_rows)

    def ask_if_made(self, question: Question) -> list[Row]:
        """The first rows; none if a table that the question needs was never made."""
        try:
            return self.ask(question)
        except NeverMadeError:
            return []

    def rows(self, sql: str, **parts: str) -> list[Row]:
        """The rows of a query with this scope's parts in it (question.py), asked once.

        `parts` are further ones. A time out of Python's range, which a client's clock may send,
        becomes None. Raises NeverMadeError, or QueryError for what the engine refuses.
        """
        query = self.filled(sql, **parts)
        return self._answers.get(query, lambda: self.reader.rows(query, self._views_since))

    def filled(self, sql: str, **parts: str) -> str:
        """The query with this scope's parts in it; `parts` are further ones."""
        return filled(sql, self._filled.get("", self._parts) | parts, self._within)

    def rows_if_made(self, sql: str) -> list[Row]:
        """The rows; none if a table that the query needs was never made."""
        try:
            return self.rows(sql)
        except NeverMadeError:
            return []

    def facts(self, sql: str) -> list[Row]:
        """The rows of a query that leads to no problem; none if only problems are asked for."""
        return [] if self.is_brief else self.rows(sql)

    @property
    def _views_since(self) -> Since:
        """The times from which on views read: many are about the last day of results.

        A reader opens tables once for each: times that are near each other share them.
        """
        day = min(self.since, self.until - DAY)
        return Since(_floored(self.since - FACTS_MARGIN), _floored(day - RESULTS_MARGIN))

    @property
    def is_recent(self) -> bool:
        """Whether this is about the last day of the cluster, which some views are about."""
        return self.about is None or self.about.is_recent

    @property
    def is_past(self) -> bool:
        """Whether configs may be others by now, so that no command may start from these."""
        return self.about is not None and self.about.is_past

    def _parts(self) -> dict[str, str]:
        return {
            "cluster": literal(self.cluster_id),
            "of_cluster": self._of_cluster,
            "without_log": "true",
            "since": literal(self.since),
            "until": literal(self.until),
            "day": literal(self.until - DAY),
            "results_since": literal(self._views_since.results),
            "last_hour": literal(max(self.since, self.until - HOUR)),
            "limit": str(MAX_ROWS_OF_NAME if self.about else MAX_ROWS),
            **(self._of_name(self.about) if self.about else NO_NAME),
        }

    def _of_name(self, about: About) -> dict[str, str]:
        """Conditions for rows of the name; among them brokers that answered its clients, and
        groups that are named, read a named topic, or have its client."""
        conditions = about.conditions
        is_client = f"{self._of_cluster} AND {about.subject.is_client}"
        own_groups = [conditions["is_group"], conditions["is_named_topic"]]
        if self.reader.is_made("group_members"):
            own_groups.append(
                f"group_id IN (SELECT group_id FROM group_members WHERE {is_client} "
                f"AND event_time >= {literal(self.until - DAY)})"
            )
        return conditions | {
            "is_own_broker": (
                f"({conditions['is_named_broker']} OR broker_id IN "
                f"(SELECT broker_id FROM quota_usage WHERE {is_client} "
                f"AND {self._within(WITHIN, 'event_time', 'event_time')}))"
            ),
            "is_own_group": f"({' OR '.join(own_groups)})",
        }

    @property
    def _of_cluster(self) -> str:
        return "true" if self.cluster_id is None else f"cluster_id = {literal(self.cluster_id)}"

    def _within(self, kind: str, first: str, last: str) -> str:
        """The condition that the time from one column to another touches this scope's.

        What is `in_day` touches the last day of the scope of a name.
        """
        if self.about is None:
            return f"{last} >= {literal(self.since)}"
        start = self.until - DAY if kind == IN_DAY else self.since
        return f"({last} >= {literal(start)} AND {first} < {literal(self.until)})"

    def extent(self, table: str) -> tuple[datetime | None, datetime | None]:
        """The first and last time of a table's rows; None if there are none."""
        from quotaflow.schemas.tables.catalog import TABLES  # noqa: PLC0415  imports pyarrow

        time = TABLES[table].time
        (row,) = self.rows(_EXTENT.format(time=time, table=table))
        return row["first"], row["last"]

    def last(self, table: str) -> datetime | None:
        """The last time of a table's rows of any time."""
        from quotaflow.schemas.tables.catalog import TABLES  # noqa: PLC0415  imports pyarrow

        (row,) = self.rows(_LAST.format(time=TABLES[table].time, table=table))
        last: datetime | None = row["last"]
        return last

    def step_s(self, table: str, min_s: int = 1) -> int:
        """The length of a step on a time axis, so that a line has at most MAX_POINTS points."""
        first, last = self.extent(table)
        long_s = 0 if first is None or last is None else (last - first) / timedelta(seconds=1)
        return _step_s(long_s, min_s)

    def steps(self, table: str, sql: str, min_s: int = 1, **parts: str) -> tuple[int, list[Row]]:
        """The length of a step in seconds, and the answer to a query in which {step} is that.

        Steps that this report's time cuts are left out: their numbers would be too low.
        """
        step_s = self.step_s(table, min_s)
        return step_s, self.whole(self.rows(sql, step=str(step_s), **parts), step_s)

    def steps_of(self, sql: str, min_s: int, **parts: str) -> tuple[int, list[Row]]:
        """The same for rows of a name, whose time may be short; with the steps that are cut."""
        rows = self.rows(sql, step=str(min_s), **parts)
        seconds = [row["second"] for row in rows]
        step_s = _step_s(max(seconds) - min(seconds) if seconds else 0, min_s)
        return step_s, rows if step_s == min_s else self.rows(sql, step=str(step_s), **parts)

    def whole(self, rows: list[Row], step_s: int) -> list[Row]:
        """The rows of steps that this report's time does not cut."""
        first, last = self.since.timestamp(), self.until.timestamp() - step_s
        return [row for row in rows if first <= row["second"] <= last]

    @property
    def level(self) -> str:
        """The highest level of which these tables have rows of the cluster in this time.

        A log is sampled as it was in the last hour.
        """
        if self.has_log:
            return SAMPLED_LOG if self.rows(_WEIGHTED) else WHOLE_LOG
        return TELEMETRY if self._has_rows("telemetry_pushes") else ADMIN_API

    @property
    def has_log(self) -> bool:
        """Whether a request log says what happened in this time: else no row means nothing."""
        return self._has_rows("requests")

    def _has_rows(self, table: str) -> bool:
        if not self.reader.is_made(table):
            return False
        # Most have rows in the last hour, and all files of a day take long to open.
        starts = ("{last_hour}", "{since}")
        return any(self.rows(_ANY.format(table=table, start=start)) for start in starts)


def _step_s(long_s: float, min_s: int) -> int:
    steps = (step for step in _STEPS_S if step >= min_s and long_s / step <= MAX_POINTS)
    return next(steps, round(long_s / MAX_POINTS) + 1)


def _floored(time: datetime) -> datetime:
    first = datetime.min.replace(tzinfo=time.tzinfo)
    return time - (time - first) % _SHARED
