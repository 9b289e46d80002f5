"""Libraries and versions of clients, and errors that brokers answered them."""

from collections.abc import Iterator

from quotaflow.pipelines.areas.finding import Finding, client_text, moment
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.udfs.counted import counted

NAME = "clients"
TABLES = ("requests", "client_failures")

_MAX_CLIENTS = 20
_UNNAMED = (None, "", "unknown")
"""Names of a library before a client sends its own (KIP-511)."""

_CLIENTS = (
    "SELECT principal, client_id, client_software_name, client_software_version, "
    "count(DISTINCT client_address) AS hosts, min(client_address) AS client_address, "
    "max(event_time) AS last_seen, max(event_time) <= max(max(event_time)) "
    "OVER (PARTITION BY principal, client_id) - INTERVAL '1' HOUR AS is_past, "
    "CAST(sum(coalesce(weight, 1)) AS BIGINT) AS requests FROM requests "
    "WHERE {of_cluster} AND ({is_client} OR {is_address}) "
    "AND {within:event_time} AND replica_id IS NULL "
    "GROUP BY principal, client_id, client_software_name, client_software_version "
    "ORDER BY requests DESC, principal, client_id, client_software_version "
    f"LIMIT {_MAX_CLIENTS}"
)
ERRORS = (
    "SELECT principal, client_id, api, error_code, error_name, "
    "CAST(sum(requests) AS BIGINT) AS requests, max(minute) AS minute "
    "FROM (SELECT *, program AS client_id FROM client_failures WHERE {of_cluster}) AS failures "
    "WHERE {is_program} AND minute >= {since} AND minute < {until} "
    "GROUP BY principal, client_id, api, error_code, error_name "
    "ORDER BY requests DESC, api, error_code, principal, client_id LIMIT {limit}"
)
"""Errors that normal work does not bring, by client, API and code, the most frequent first."""


def findings(scope: Scope) -> Iterator[Finding]:
    """Who it is, by library and version, and the errors that its requests got."""
    for row in scope.facts(ERRORS):
        requests = counted(row["requests"], f"{row['api']} request")
        text = f"{client_text(row)}: {requests} got {error(row)}."
        yield Finding(text=text, evidence_table="client_failures", evidence=row)
    rows = scope.facts(_CLIENTS)
    versions: dict[str, set[str]] = {}
    for row in rows:
        if row["client_software_name"] not in _UNNAMED and not row["is_past"]:
            versions.setdefault(client_text(row), set()).add(_software(row))
    for row in rows:
        verb = "ran" if row["is_past"] else "runs"
        yield _fact(f"{client_text(row)} {verb} {_library(row)}.", row)
    for client, several in versions.items():
        if len(several) > 1:
            yield _fact(f"{client} runs several versions: {', '.join(sorted(several))}.", {})


def error(row: Row) -> str:
    """The name of an error that brokers answered; its code if it has none."""
    return row["error_name"] or f"error {row['error_code']}"


def _library(row: Row) -> str:
    hosts = row["client_address"] if row["hosts"] == 1 else counted(row["hosts"], "host")
    until = f" until {moment(row['last_seen'])}" if row["is_past"] else ""
    return f"{_software(row)} on {hosts}{until}, and sent {counted(row['requests'], 'request')}"


def _software(row: Row) -> str:
    if row["client_software_name"] in _UNNAMED:
        return "an unnamed library"
    return f"{row['client_software_name']} {row['client_software_version']}"


def _fact(text: str, row: Row) -> Finding:
    return Finding(text=text, evidence_table="requests", evidence=row)
