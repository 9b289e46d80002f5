"""What an area may ask: the rows of one subject in one cluster, up to a time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines.advice.why.subject import Subject, any_of
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.reader import Reader, engine_errors
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.udfs.rules.principal_name import bare

DAY = timedelta(days=1)
MAX_ROWS = 200
_MAX_TOPICS = 50
_LAST = "SELECT max(event_time) AS last FROM quota_usage WHERE {of_cluster}"
# What it read and wrote, most bytes first; an id has its name from any time.
_TOPICS = (
    "SELECT coalesce(traffic.topic, topic_ids.topic) AS topic, sum(traffic.bytes) AS n "
    "FROM (SELECT * FROM traffic WHERE {of_cluster} AND {is_client} AND event_time >= {day} "
    "AND event_time < {end}) AS traffic "
    "LEFT JOIN topic_ids ON traffic.cluster_id = topic_ids.cluster_id "
    "AND traffic.topic_id = topic_ids.topic_id "
    "WHERE coalesce(traffic.topic, topic_ids.topic) IS NOT NULL "
    f"GROUP BY 1 ORDER BY n DESC, topic LIMIT {_MAX_TOPICS}"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """A subject's rows from `start` to `end`; what changed lately is of the day before `end`.

    `principals` are those of the subject and of its clients. `topics` are those that it names, or
    that its clients used on that day.
    """

    reader: Reader
    subject: Subject
    of_cluster: str
    start: datetime
    end: datetime
    connection: Connection
    principals: tuple[str, ...]
    topics: tuple[str, ...] = ()
    is_recent: bool = True
    """`end` is within the last day of the cluster, which some views are about."""

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query, with this scope's conditions in the place of their names.

        At most MAX_ROWS, if the query has no limit of its own: a client can have any number of
        client ids. A time out of Python's range, which a client's clock may send, becomes None.
        """
        limit = "" if " LIMIT " in sql else f" LIMIT {MAX_ROWS}"
        query = sql.format(**self.conditions) + limit
        with engine_errors(query):
            return rows_of(self.reader.query(query).read_all())

    @property
    def conditions(self) -> dict[str, str]:
        """SQL conditions and literals by their names in queries."""
        users = sorted({bare(principal) for principal in self.principals})
        client_ids = {*self.subject.client_ids, *(each for _, each in self.subject.clients if each)}
        return {
            "of_cluster": self.of_cluster,
            "is_client": self.subject.is_client,
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
            "in_range": f"event_time >= {literal(self.start)} AND event_time < {literal(self.end)}",
            "start": literal(self.start),
            "end": literal(self.end),
            "day": literal(self.end - DAY),
        }


def is_recent(scope: Scope) -> bool:
    """Whether the cluster's newest window is of the day after the scope's end."""
    (row,) = scope.rows(_LAST)
    return bool(row["last"] is None or row["last"] - scope.end < DAY)


def topics_of(scope: Scope) -> tuple[str, ...]:
    """The topics that the subject names, else those that its clients used; none without traffic."""
    if scope.subject.topics:
        return scope.subject.topics
    needed = ("traffic", "topics", "topic_names")
    if not all(map(scope.reader.is_made, needed)):
        return ()
    return tuple(row["topic"] for row in scope.rows(_TOPICS))
