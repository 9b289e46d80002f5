"""Latency as clients measure it: what part of it no request explains that the broker logged."""

from collections.abc import Iterator

from quotaflow.pipelines.areas.finding import Finding, client_text
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts

NAME = "latency"
TABLES = ("client_latency",)

# The worst minute of each client and API: the others are in the view.
_LATENCY = (
    "SELECT * FROM client_latency WHERE {of_cluster} AND {is_client} "
    "AND minute >= {since} AND minute < {until} AND latency_max_ms IS NOT NULL "
    "QUALIFY row_number() OVER (PARTITION BY principal, client_id, api ORDER BY "
    "latency_max_ms DESC, minute, broker_id, client_instance_id) = 1 "
    "ORDER BY latency_max_ms DESC, principal, client_id, api"
    " LIMIT {limit}"
)


def findings(scope: Scope) -> Iterator[Finding]:
    """The slowest minute of each client and API, split where that is possible."""
    for row in scope.facts(_LATENCY):
        kind = "producer" if row["api"] == "PRODUCE" else "consumer"
        yield Finding(
            text=(
                f"{client_text(row)}: the slowest request of the {kind} took "
                f"{texts.duration(row['latency_max_ms'])} at broker {row['broker_id']}, by metrics "
                f"that the client pushed in the minute from {row['minute']:%H:%M} UTC."
                f"{_parts(row)}"
            ),
            evidence_table="client_latency",
            evidence=row,
        )


def _parts(row: Row) -> str:
    longest = row["broker_total_max_ms"]
    if longest is None:
        return " The part of the broker is not known."
    text = f" The longest of its requests in the log took {texts.duration(longest)} in the broker"
    outside = row["slowest_outside_ms"]
    if row["outside_unknown"] == "throttled":
        return f"{text}. A quota throttled {row['throttled_requests']:,} of these."
    if row["outside_unknown"] == "incomplete_log":
        return f"{text}. The log may lack longer ones."
    if outside is None:
        return f"{text}."
    return (
        f"{text}. So at least {texts.duration(outside)} were outside the broker: in the network, "
        "in the client, in a login or behind earlier requests of the connection."
    )
