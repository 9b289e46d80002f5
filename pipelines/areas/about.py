"""The scope of a question about a name: what belongs to the name, and which time is meant."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines.areas.question import any_of, filled
from quotaflow.pipelines.areas.scope import DAY, FACTS_MARGIN, HOUR, RESULTS_MARGIN, About, Scope
from quotaflow.pipelines.areas.subject import NAMES, Subject, UnknownNameError, resolve
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.warehouse.reader import Reader, one_cluster
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import EVER, Since, TimeRange

_MAX_TOPICS = 50
_READ = {*NAMES, "quota_usage", "traffic", "topic_ids"}
_MARGIN = 2 * FACTS_MARGIN
"""The newest window of a name may be so much older than that of the cluster."""
_CLUSTERS = "SELECT cluster_id, max(event_time) AS newest FROM quota_usage GROUP BY cluster_id"
_NEWEST = (
    "SELECT event_time AS newest, rolled_up_s FROM quota_usage "
    "WHERE {of_cluster} AND {is_client} AND {of_time} "
    "ORDER BY event_time DESC, rolled_up_s DESC NULLS LAST LIMIT 1"
)
_PRINCIPALS = (
    "SELECT DISTINCT principal FROM quota_usage "
    "WHERE {of_cluster} AND {is_client_id} AND event_time >= {day}"
)
# What it read and wrote, most bytes first; an id has its name from any time.
_TOPICS = (
    "SELECT coalesce(traffic.topic, topic_ids.topic) AS topic, sum(traffic.bytes) AS n "
    "FROM (SELECT * FROM traffic WHERE {of_cluster} AND {is_client} AND event_time >= {day} "
    "AND event_time < {until}) AS traffic "
    "LEFT JOIN topic_ids ON traffic.cluster_id = topic_ids.cluster_id "
    "AND traffic.topic_id = topic_ids.topic_id "
    "WHERE coalesce(traffic.topic, topic_ids.topic) IS NOT NULL "
    f"GROUP BY 1 ORDER BY n DESC, topic LIMIT {_MAX_TOPICS}"
)


@dataclass(frozen=True, slots=True)
class Period:
    """Which time is asked about: up to `at`, else up to the newest window; from the minute that
    holds the time `lookback` before it."""

    at: datetime | None
    lookback: timedelta


def scope_about(
    reader: Reader,
    name: str,
    period: Period,
    cluster_id: str | None,
    conf: Conf,
    *,
    questions: Collection[str] = (),
) -> Scope:
    """The scope of a name in any of its forms (see subject.resolve).

    `questions` are the tables and views that will be asked about it. Without a cluster, in the only
    one that the tables have. Raises UnknownNameError if the tables
    have nothing of this name by then, ConfigError if there are several clusters.
    """
    every = {*_READ, *questions}
    reader.expect(every)
    newest_of = {row["cluster_id"]: row["newest"] or EVER.start for row in reader.rows(_CLUSTERS)}
    cluster = one_cluster(filter(None, newest_of), cluster_id)
    of_cluster = "true" if cluster is None else f"cluster_id = {literal(cluster)}"
    last = newest_of.get(cluster) or max(newest_of.values(), default=EVER.start)
    # The start of the day that ends then, or with the newest window of any client.
    day = (min(period.at, last) if period.at else last) - DAY
    before = max(period.lookback, HOUR) + _MARGIN
    reader.gather(every, Since(day + DAY - before, day - before - RESULTS_MARGIN))
    subject = resolve(reader, of_cluster, name, day)
    newest = _newest(reader, of_cluster, subject, period.at, day)
    end = newest.end or newest.start
    # Tables of minutes have whole ones, and all areas speak of one time.
    start = min(newest.start, end - period.lookback).replace(second=0, microsecond=0)
    about = About(subject, _principals(reader, of_cluster, subject, min(start, end - DAY)))
    scope = Scope(reader, cluster, start, end, datetime.now(UTC), conf, about)
    topics, age = _topics(scope, subject), last - end
    about = replace(about, topics=topics, is_recent=age < DAY, is_past=age > HOUR)
    return replace(scope, about=about)


def _principals(
    reader: Reader, of_cluster: str, subject: Subject, since: datetime
) -> tuple[str, ...]:
    """Those it names, and those of its clients."""
    every = {*subject.principals, *(principal for principal, _ in subject.clients)}
    if subject.client_ids:
        is_client_id = any_of("client_id", subject.client_ids)
        parts = {"of_cluster": of_cluster, "is_client_id": is_client_id, "day": literal(since)}
        every |= {row["principal"] for row in reader.rows(filled(_PRINCIPALS, parts))}
    return tuple(sorted(filter(None, every)))


def _newest(
    reader: Reader, of_cluster: str, subject: Subject, at: datetime | None, day: datetime
) -> TimeRange:
    """Its newest window by then; that of the cluster if it has none at all.

    It is sought from `day` on first: most names have one there.
    """
    by_then = "true" if at is None else f"event_time <= {literal(at)}"
    since_day = f"event_time >= {literal(day)}"

    def newest_of(is_client: str, *of_time: str) -> list[dict[str, Any]]:
        of_times = " AND ".join(of_time) or "true"
        parts = {"of_cluster": of_cluster, "is_client": is_client, "of_time": of_times}
        return reader.rows(filled(_NEWEST, parts))

    of_name = subject.is_client
    rows = newest_of(of_name, by_then, since_day) or newest_of(of_name, by_then)
    if not rows and not newest_of(of_name):
        rows = newest_of("true", by_then, since_day) or newest_of("true", by_then)
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


def _topics(scope: Scope, subject: Subject) -> tuple[str, ...]:
    """The topics that the subject names, else those that its clients used; none without traffic."""
    if subject.topics:
        return subject.topics
    needed = ("traffic", "topics", "topic_names")
    has_clients = subject.principals or subject.client_ids or subject.clients
    if not has_clients or not all(map(scope.reader.is_made, needed)):
        return ()
    return tuple(row["topic"] for row in scope.rows(_TOPICS))
