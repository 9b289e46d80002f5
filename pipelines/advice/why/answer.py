"""Asks every area about a name: what is wrong, what is known, and what was asked in vain."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines.advice.why import (
    changes,
    fetches,
    groups,
    latency,
    producer_ids,
    quotas,
    racks,
    reads,
    remote_reads,
    replication,
    telemetry,
    versions,
)
from quotaflow.pipelines.advice.why.finding import NOTHING, PROBLEM, UNKNOWN, Area, Finding
from quotaflow.pipelines.advice.why.scope import Scope, is_recent, topics_of
from quotaflow.pipelines.advice.why.subject import Subject, UnknownNameError, any_of, resolve
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.warehouse.reader import Reader, one_cluster
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import TimeRange

AREAS: tuple[Area, ...] = (
    quotas,
    producer_ids,
    racks,
    fetches,
    groups,
    reads,
    remote_reads,
    latency,
    telemetry,
    replication,
    changes,
    versions,
)
"""Every area is asked about every name."""

MAX_FINDINGS = 50
"""Findings of an area; a last one says that there are more."""

_CLUSTERS = "SELECT DISTINCT cluster_id FROM quota_usage WHERE cluster_id IS NOT NULL"
_NEWEST = (
    "SELECT event_time AS newest, rolled_up_s FROM quota_usage "
    "WHERE {of_cluster} AND {is_client} AND {by_then} "
    "ORDER BY event_time DESC, rolled_up_s DESC NULLS LAST LIMIT 1"
)
_PRINCIPALS = "SELECT DISTINCT principal FROM quota_usage WHERE {of_cluster} AND {is_client_id}"


@dataclass(frozen=True, slots=True)
class Period:
    """Which time is asked about: up to `at`, else up to the newest window; `lookback` before it."""

    at: datetime | None
    lookback: timedelta


@dataclass(frozen=True, slots=True)
class AreaAnswer:
    """The findings of one area, problems first; at least one."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def is_problem(self) -> bool:
        """Whether something in it should change."""
        return any(finding.state == PROBLEM for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Answer:
    """What every area has about a name; areas with problems come first."""

    subject: Subject
    cluster_id: str | None
    start: datetime
    end: datetime
    areas: tuple[AreaAnswer, ...]


def why(
    reader: Reader, name: str, period: Period, cluster_id: str | None, connection: Connection
) -> Answer:
    """Ask every area about `name` in any of its forms (see subject.resolve).

    Without a cluster, in the only one that the tables have. Raises UnknownNameError if the tables
    have nothing of this name by then, ConfigError if there are several clusters.
    """
    cluster_ids = [row["cluster_id"] for row in reader.rows(_CLUSTERS)]
    cluster = one_cluster(cluster_ids, cluster_id)
    of_cluster = "true" if cluster is None else f"cluster_id = {literal(cluster)}"
    subject = resolve(reader, of_cluster, name)
    newest = _newest(reader, of_cluster, subject, period.at)
    end = newest.end or newest.start
    start = min(newest.start, end - period.lookback)
    principals = _principals(reader, of_cluster, subject)
    scope = Scope(reader, subject, of_cluster, start, end, connection, principals)
    scope = replace(scope, topics=topics_of(scope), is_recent=is_recent(scope))
    areas = sorted(
        (_area_answer(area, scope) for area in AREAS), key=lambda area: not area.is_problem
    )
    return Answer(subject, cluster, start, end, tuple(areas))


def _area_answer(area: Area, scope: Scope) -> AreaAnswer:
    every = sorted(_findings(area, scope), key=lambda finding: finding.state != PROBLEM)
    shown = every[:MAX_FINDINGS]
    tables = ", ".join(area.TABLES)
    if len(every) > len(shown):
        shown.append(Finding(text=f"There are more: see {tables}.", evidence_table=tables))
    if not shown:
        shown = [Finding(text="Nothing found.", state=NOTHING, evidence_table=tables)]
    return AreaAnswer(area.NAME, tuple(shown))


def _findings(area: Area, scope: Scope) -> Iterator[Finding]:
    try:
        yield from area.findings(scope)
    except NeverMadeError as error:
        yield Finding(
            text=f"Not known: table {error.table} was never made.",
            state=UNKNOWN,
            next_step=fillers.hint(error.table),
            evidence_table=error.table,
        )
    except QueryError as error:
        yield Finding(text=f"Not known: {error}", state=UNKNOWN, evidence_table=area.TABLES[0])


def _principals(reader: Reader, of_cluster: str, subject: Subject) -> tuple[str, ...]:
    """Those it names, and those of its clients."""
    of_clients = {principal for principal, _ in subject.clients if principal}
    is_client_id = any_of("client_id", subject.client_ids)
    rows: list[dict[str, Any]] = reader.rows(
        _PRINCIPALS.format(of_cluster=of_cluster, is_client_id=is_client_id)
    )
    of_ids = {row["principal"] for row in rows if row["principal"]}
    return tuple(sorted({*subject.principals, *of_clients, *of_ids}))


def _newest(reader: Reader, of_cluster: str, subject: Subject, at: datetime | None) -> TimeRange:
    """Its newest window by then; that of the cluster if it has none at all."""
    by_then = "true" if at is None else f"event_time <= {literal(at)}"
    filters = {"of_cluster": of_cluster, "is_client": subject.is_client}
    rows = reader.rows(_NEWEST.format(**filters, by_then=by_then))
    if not rows and not reader.rows(_NEWEST.format(**filters, by_then="true")):
        rows = reader.rows(_NEWEST.format(of_cluster=of_cluster, is_client="true", by_then=by_then))
    if not rows:
        when = "" if at is None else f" by {at:%Y-%m-%d %H:%M:%S} UTC"
        raise UnknownNameError(
            f"the tables have nothing on {subject.name}{when}: give a later --at, or none"
        )
    newest: datetime = rows[0]["newest"]
    if rows[0]["rolled_up_s"]:
        # All of the minute or hour is in one row.
        return TimeRange(newest, newest + timedelta(seconds=rows[0]["rolled_up_s"]))
    # Include the window that starts then, for any length of windows.
    end = newest + timedelta(minutes=1)
    return TimeRange(newest, min(at, end) if at else end)
