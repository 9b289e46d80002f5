"""Latency as clients measure it: what part of it the broker and its quotas take."""

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
        yield Finding(
            text=(
                f"{client_text(row)}: the slowest {row['api']} took "
                f"{texts.duration(row['latency_max_ms'])} at broker {row['broker_id']}, by metrics "
                f"that the client pushed in the minute from {row['minute']:%H:%M} UTC."
                f"{_parts(row)}"
            ),
            evidence_table="client_latency",
            evidence=row,
        )


def _parts(row: Row) -> str:
    mean, broker = row["latency_avg_ms"], row["broker_total_avg_ms"]
    if mean is None:
        return ""
    text = f" The client measured {texts.duration(mean)} on average"
    if broker is None:
        return f"{text}; the part of the broker is not known."
    of_broker = texts.duration(broker)
    if broker > mean:
        return (
            f"{text}. The broker measured {of_broker} on average in that minute. "
            "These are averages of different requests: a client averages over a time of its own."
        )
    parts = [f"{of_broker} in the broker"]
    if row["throttle_avg_ms"]:
        parts.append(f"{texts.duration(row['throttle_avg_ms'])} for a quota")
    outside = row["outside_avg_ms"]
    if outside is None:
        return f"{text}, of that {' and '.join(parts)}."
    return f"{text}: {', '.join(parts)}, {texts.duration(outside)} in network and client."
