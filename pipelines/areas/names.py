"""The names that have pages, and the search over them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.sql_literals import literal

KINDS = "principal", "client", "group", "topic", "broker", "move"
"""Kinds of names that have a page each."""
PRINCIPAL, CLIENT, GROUP, TOPIC, BROKER, MOVE = KINDS
MAX_NAMES = 25
"""Names of a kind on a page."""

_OF_TABLE = "SELECT {column} AS name FROM {table} WHERE {{of_cluster}}"
_MOVE = "concat(topic, '-', CAST(partition AS STRING))"
_SOURCES: dict[str, tuple[tuple[str, str], ...]] = {
    PRINCIPAL: (
        ("quota_usage", "principal"),
        ("producer_id_rates", "principal"),
        ("client_coverage", "principal"),
        ("config_alterations", "principal"),
    ),
    CLIENT: (("quota_usage", "client_id"), ("client_coverage", "client_id")),
    GROUP: (("groups", "group_id"), ("group_members", "group_id"), ("group_commits", "group_id")),
    TOPIC: (("topics", "topic"), ("topic_names", "topic")),
    BROKER: (("brokers", "CAST(broker_id AS STRING)"), ("traffic", "CAST(broker_id AS STRING)")),
    MOVE: (("reassignments", _MOVE), ("moving_replicas", _MOVE)),
}
"""Tables with names of a kind: those that do not exist are left out."""
_MATCHES = f"""
SELECT name, count(*) OVER () AS of_all
FROM ({{union}}) AS names
WHERE name <> '' AND contains(lower(name), {{text}})
ORDER BY lower(name) <> {{text}}, NOT starts_with(lower(name), {{text}}), name
LIMIT {MAX_NAMES}
"""


@dataclass(frozen=True, slots=True)
class NameMatches:
    """Names of one kind that have a text; `of_all` are there, and `problem` is why none is known.

    Each name is with its text to show.
    """

    kind: str
    names: tuple[tuple[str, str], ...] = ()
    of_all: int = 0
    problem: str = ""

    @property
    def head(self) -> str:
        """The kind in the plural."""
        return f"{self.kind.capitalize()}s"


def find(scope: Scope, text: str) -> Sequence[NameMatches]:
    """Names of every kind with this text in them, ignoring case; all names without a text."""
    return [_of_kind(scope, kind, text) for kind in _SOURCES]


def _of_kind(scope: Scope, kind: str, text: str) -> NameMatches:
    union = " UNION ".join(_queries(scope, kind))
    if not union:
        return NameMatches(kind)
    try:
        rows = scope.rows(_MATCHES.replace("{union}", union), text=literal(text.strip().lower()))
    except (NeverMadeError, QueryError) as error:
        return NameMatches(kind, problem=texts.listed(error, texts.SENTENCE_CHARS))
    shown = tuple((row["name"], texts.listed(row["name"], 80)) for row in rows)
    return NameMatches(kind, shown, rows[0]["of_all"] if rows else 0)


def _queries(scope: Scope, kind: str) -> Iterator[str]:
    for table, column in _SOURCES[kind]:
        if scope.reader.is_made(table):
            yield _OF_TABLE.format(column=column, table=table)
