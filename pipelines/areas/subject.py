"""What a name means: a principal, client, group, transactional id, topic, address or broker."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines.areas.question import any_of
from quotaflow.pipelines.config.cluster import is_like
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.warehouse.reader import Reader, each
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.programs import program_of
from quotaflow.schemas.tables.catalog import EVENTS
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.address import texts
from quotaflow.udfs.rules.principal_name import bare, named

MAX_CLIENTS = 20
"""Clients of a topic, group or address that count: those with most requests or bytes."""

_MAX_NAMES, _MAX_ALIKE = 10_000, 200
_TO_LAST_HOUR = timedelta(hours=23)
_BROKER_NAME = re.compile(r"(?:broker[- ]?)?([0-9]{1,9})", re.IGNORECASE)
_TOPIC_IDS = ("topics", "topic_names")
_PRINCIPAL, _CLIENT_ID, _BROKER, _TOPIC = "principal", "client id", "broker", "topic"
_ADDRESS, _GROUP, _INSTANCE = "address", "group", "client instance"
_LIKE, _ANY = "client ids like", "*"


@dataclass(frozen=True, slots=True)
class _Place:
    """Tables that have a kind of name, and which of their rows have it; with columns to show."""

    kind: str
    tables: tuple[str, ...]
    condition: str
    columns: str = "NULL AS name, NULL AS client_id"
    limit: str = ""


_PLACES = (
    _Place(
        _PRINCIPAL,
        ("quota_usage", "producer_id_rates", "client_coverage", "config_alterations"),
        "principal IS NOT NULL",
        "principal AS name, NULL AS client_id",
    ),
    _Place(_CLIENT_ID, ("quota_usage", "client_coverage"), "client_id = {name}", limit="LIMIT 1"),
    _Place(
        _LIKE,
        ("quota_usage", "client_coverage"),
        "left(client_id, length({prefix})) = {prefix}",
        "client_id AS name, NULL AS client_id",
        f"GROUP BY client_id ORDER BY name LIMIT {_MAX_NAMES}",
    ),
    _Place(_BROKER, ("brokers", "quota_usage"), "broker_id = {broker_id}", limit="LIMIT 1"),
    _Place(_ADDRESS, ("address_clients", "client_coverage"), "{is_address}", limit="LIMIT 1"),
    _Place(_GROUP, ("groups",), "group_id = {name}", limit="LIMIT 1"),
    _Place(
        _INSTANCE,
        ("client_coverage",),
        "client_instance_id = {name}",
        "principal AS name, client_id",
    ),
    _Place(
        _TOPIC,
        ("topic_ids",),
        "topic = {name} OR topic_id = {name}",
        "topic AS name, NULL AS client_id",
    ),
)
_HALF = 4
"""Where names are, asked by two queries: to plan one takes longer than to run it."""
# Where no name was known, a row has the id alone.
_OF_TOPIC = (
    "SELECT principal, client_id, sum(bytes) AS n FROM traffic "
    "WHERE {of_cluster} AND {of_time} AND ({topics} OR "
    "topic_id IN (SELECT topic_id FROM topic_ids WHERE {of_cluster} AND {topics})) "
    f"GROUP BY principal, client_id ORDER BY n DESC, principal, client_id LIMIT {MAX_CLIENTS}"
)
_OF_REQUESTS = (
    'SELECT principal, client_id, max(group_id = {name}) AS "group", '
    'max(transactional_id = {name}) AS "transactional id", '
    "max({is_address}) AS address, count(*) AS n FROM requests "
    "WHERE {of_cluster} AND replica_id IS NULL AND {of_requests} AND (group_id = {name} OR "
    "transactional_id = {name} OR {is_address}) "
    f"GROUP BY principal, client_id ORDER BY n DESC, principal, client_id LIMIT {MAX_CLIENTS}"
)
_OF_METRICS = (
    "SELECT DISTINCT principal, client_id FROM client_metrics "
    f"WHERE {{of_cluster}} AND {{of_metrics}} AND group_id = {{name}} LIMIT {MAX_CLIENTS}"
)
_NEAR_CLIENT_IDS = (
    "SELECT DISTINCT client_id AS n FROM quota_usage "
    f"WHERE {{of_cluster}} ORDER BY n LIMIT {_MAX_NAMES}"
)
_NEAR_TOPICS = (
    f"SELECT DISTINCT topic AS n FROM topic_ids WHERE {{of_cluster}} ORDER BY n LIMIT {_MAX_NAMES}"
)
NAMES = {
    *(table for place in _PLACES for table in place.tables),
    *(*_TOPIC_IDS, "traffic", "requests", "client_metrics"),
}
"""The tables and views in which names are."""
Client = tuple[str | None, str | None]
"""Principal and client id."""
_Meaning = tuple[str, Client | None]
"""What a name means, and a client that it leads to."""


class UnknownNameError(QuotaflowError):
    """The tables have nothing of this name; the message gives the nearest name they have."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a name means in a cluster. `clients` are those of a group, topic, address or instance.

    `meanings` has one text for each thing that it means, such as "principal User:alice".
    """

    name: str
    meanings: tuple[str, ...]
    principals: tuple[str, ...] = ()
    client_ids: tuple[str, ...] = ()
    clients: tuple[Client, ...] = ()
    topics: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()

    @property
    def is_client(self) -> str:
        """The SQL condition for rows of its clients, by principal and client_id."""
        return self._is_any(self.client_ids, self.clients)

    @property
    def is_program(self) -> str:
        """The same for rows of programs, whose client_id is what several of one program share."""
        client_ids = dict.fromkeys(
            each for name in self.client_ids for each in (name, program_of(name))
        )
        clients = dict.fromkeys(
            (principal, each)
            for principal, name in self.clients
            for each in (name, name and program_of(name))
        )
        return self._is_any(tuple(client_ids), tuple(clients))

    def _is_any(self, client_ids: tuple[str, ...], clients: tuple[Client, ...]) -> str:
        parts = [any_of("principal", self.principals), any_of("client_id", client_ids)]
        parts += [
            f"(principal IS NOT DISTINCT FROM {literal(principal)} "
            f"AND client_id IS NOT DISTINCT FROM {literal(client_id)})"
            for principal, client_id in clients
        ]
        return f"({' OR '.join(parts)})"


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The queries for one name in one cluster.

    `of_requests`, `of_metrics` and `of_time` are the conditions for the times of rows of requests,
    client metrics and results.
    """

    reader: Reader
    of_cluster: str
    name: str
    of_requests: str
    of_metrics: str
    of_time: str

    @property
    def addresses(self) -> tuple[str, ...]:
        """The name as an address, if it is one."""
        return texts(_host(self.name))

    def rows(self, sql: str, *tables: str, **others: str) -> list[dict[str, Any]]:
        """The rows of a query; none while a table that it reads does not exist."""
        if not all(map(self.reader.is_made, tables)):
            return []
        return self.reader.rows(
            sql.format(
                of_cluster=self.of_cluster,
                of_time=self.of_time,
                of_requests=self.of_requests,
                of_metrics=self.of_metrics,
                name=literal(self.name),
                prefix=literal(self.name.partition(_ANY)[0]),
                is_address=any_of("client_address", self.addresses),
                **others,
            )
        )

    def is_made(self, name: str) -> bool:
        """Whether a table exists, or what a view of topics reads."""
        needed = _TOPIC_IDS if name == "topic_ids" else (name,)
        return all(map(self.reader.is_made, needed))

    @property
    def broker_id(self) -> str | None:
        """The broker of a name such as broker-1 or 1."""
        number = _BROKER_NAME.fullmatch(self.name.strip())
        return number[1] if number else None

    def named(self, places: Iterable[_Place]) -> dict[str, list[dict[str, Any]]]:
        """What these places have of the name, by kind."""
        left_out = {
            _BROKER: self.broker_id is None,
            _ADDRESS: not self.addresses,
            _LIKE: _ANY not in self.name,
        }
        queries = [
            f"(SELECT '{place.kind}' AS kind, {place.columns} FROM {table} WHERE {{of_cluster}} "
            f"AND {'{of_time}' if table in EVENTS else 'true'} AND ({place.condition}) "
            f"{place.limit})"
            for place in places
            if not left_out.get(place.kind)
            for table in filter(self.is_made, place.tables)
        ]
        every: dict[str, list[dict[str, Any]]] = {place.kind: [] for place in places}
        if queries:
            rows = " UNION ALL ".join(queries)
            query = f"SELECT DISTINCT * FROM ({rows}) AS named ORDER BY name, client_id"
            for row in self.rows(query, broker_id=str(self.broker_id)):
                every[row["kind"]].append(row)
        return every


def resolve(reader: Reader, of_cluster: str, name: str, day: datetime) -> Subject:
    """Look the name up in all its meanings: in results of the day, and facts of its last hour.

    A name that has none there is sought in facts of the day, then at any time; in requests, of
    which there are too many, only in the day. Raises UnknownNameError if it has none.
    """
    of_day, of_hour = (f"event_time >= {literal(each)}" for each in (day, day + _TO_LAST_HOUR))
    for times in ((of_hour, of_hour, of_day), (of_day, of_day, of_day)):
        with suppress(UnknownNameError):
            return _resolved(_Lookup(reader, of_cluster, name, *times))
    lookup = _Lookup(reader, of_cluster, name, of_day, "true", "true")
    try:
        return _resolved(lookup)
    except UnknownNameError:
        raise UnknownNameError(_unknown(lookup)) from None


def _like(pattern: str, matches: int) -> str:
    left_out = f" (the first {_MAX_ALIKE})" if matches > _MAX_ALIKE else ""
    return f"{counted(matches, 'client id')} like {pattern}{left_out}"


def _resolved(lookup: _Lookup) -> Subject:
    name = lookup.name
    of_places, of_requests, of_metrics, of_others = each(
        lookup.reader, lambda ask: [*ask(lookup)], _QUESTIONS
    )
    of_kind = dict([*of_places, *of_others])
    principals = named(name, {row["name"] for row in of_kind[_PRINCIPAL]})
    alike = [row["name"] for row in of_kind[_LIKE] if is_like(row["name"], name)]
    client_ids = (name, *alike[:_MAX_ALIKE]) if of_kind[_CLIENT_ID] or alike else ()
    topics = [row["name"] for row in of_kind[_TOPIC]]
    brokers = [int(lookup.broker_id or 0)] if of_kind[_BROKER] else []
    others = [*of_requests, *of_metrics, *_others(lookup, of_kind)]
    meanings = [
        *(f"principal {principal}" for principal in principals),
        *([_like(name, len(alike))] if alike else []),
        *([f"client id {name}"] if of_kind[_CLIENT_ID] else []),
        *dict.fromkeys(meaning for meaning, _ in others),
        *(f"topic {topic}" for topic in topics),
        *(f"broker {broker_id}" for broker_id in brokers),
    ]
    if not meanings:
        raise UnknownNameError(name)
    clients = dict.fromkeys(client for _, client in others if client is not None)
    clients |= dict.fromkeys(_of_topics(lookup, tuple(topics)))
    is_group = any(meaning.startswith("group ") for meaning, _ in others)
    is_address = any(meaning.startswith("address ") for meaning, _ in others)
    return Subject(
        name=name,
        meanings=tuple(dict.fromkeys(meanings)),
        principals=principals,
        client_ids=client_ids,
        clients=tuple(clients)[: 2 * MAX_CLIENTS],
        topics=tuple(topics),
        addresses=lookup.addresses if is_address else (),
        groups=(name,) if is_group else (),
        brokers=tuple(brokers),
    )


def _of_requests(lookup: _Lookup) -> Iterator[_Meaning]:
    for row in lookup.rows(_OF_REQUESTS, "requests"):
        kinds = [kind for kind in ("group", "transactional id", "address") if row[kind]]
        for kind in kinds:
            name = lookup.addresses[0] if kind == "address" else lookup.name
            yield f"{kind} {name}", (row["principal"], row["client_id"])


def _of_metrics(lookup: _Lookup) -> Iterator[_Meaning]:
    for row in lookup.rows(_OF_METRICS, "client_metrics"):
        yield f"group {lookup.name}", (row["principal"], row["client_id"])


def _others(lookup: _Lookup, of_kind: Mapping[str, list[dict[str, Any]]]) -> Iterator[_Meaning]:
    if of_kind[_ADDRESS]:
        yield f"{_ADDRESS} {lookup.addresses[0]}", None
    if of_kind[_GROUP]:
        yield f"{_GROUP} {lookup.name}", None
    for row in of_kind[_INSTANCE]:
        yield f"{_INSTANCE} {lookup.name}", (row["name"], row["client_id"])


def _of_topics(lookup: _Lookup, topics: tuple[str, ...]) -> Iterator[Client]:
    """Clients that read or write the topics, those with most bytes."""
    if topics:
        for row in lookup.rows(_OF_TOPIC, "traffic", topics=any_of("topic", topics)):
            yield row["principal"], row["client_id"]


_QUESTIONS: tuple[Callable[[_Lookup], Iterable[Any]], ...] = (
    lambda lookup: lookup.named(_PLACES[:_HALF]).items(),
    *(_of_requests, _of_metrics),
    lambda lookup: lookup.named(_PLACES[_HALF:]).items(),
)


def _host(name: str) -> str:
    """An address without what Java and Kafka print around it: /10.0.0.7, [::1]:9092."""
    text = name.strip().removeprefix("/")
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, colon, port = text.partition(":")
    return host if colon and port.isdigit() and "." in host else text


def _unknown(lookup: _Lookup) -> str:
    near = difflib.get_close_matches(lookup.name, list(_candidates(lookup)), n=1, cutoff=0.0)
    hint = f"did you mean {near[0]}?" if near else "quota_usage is empty"
    return (
        f"no client, group, topic, address or broker in the tables is {lookup.name} ({hint}); they "
        "have what `quotaflow run --once` read last"
    )


def _candidates(lookup: _Lookup) -> Iterator[str]:
    for row in lookup.named(_PLACES[:1])[_PRINCIPAL]:
        yield from (bare(row["name"]), row["name"])
    yield from (row["n"] for row in lookup.rows(_NEAR_CLIENT_IDS, "quota_usage") if row["n"])
    yield from (row["n"] for row in lookup.rows(_NEAR_TOPICS, *_TOPIC_IDS))
