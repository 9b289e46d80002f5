"""Reads across racks (KIP-392), and what producers send to other racks (KIP-1123)."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import (
    FACT,
    PROBLEM,
    Finding,
    Row,
    client_text,
    last_day,
)
from quotaflow.pipelines.areas.scope import Scope

NAME = "racks"
TABLES = ("client_racks", "replica_advice", "producer_rack_advice")

_RACKS = (
    "SELECT * FROM client_racks WHERE {of_cluster} AND {is_client} "
    "ORDER BY cross_rack_bytes DESC NULLS LAST, principal, client_id"
    " LIMIT {limit}"
)
_STEPS = (
    "SELECT * FROM replica_advice WHERE {of_cluster} AND ({is_client} OR {is_named_topic}) "
    "ORDER BY saved_bytes_per_hour DESC NULLS LAST, advice, client_id, topic"
    " LIMIT {limit}"
)
_PRODUCER_STEPS = (
    "SELECT * FROM producer_rack_advice WHERE {of_cluster} AND ({is_client} OR {is_named_topic}) "
    "ORDER BY saved_bytes_per_hour DESC NULLS LAST, advice, client_id, topic"
    " LIMIT {limit}"
)
_MEGABYTE = 1e6
_FEW = 0.1
"""As large a share may cross racks where client_racks says that a client followed."""


def findings(scope: Scope) -> Iterator[Finding]:
    """In which rack each consumer is and reads, and each step that keeps bytes in a rack."""
    if not scope.is_recent:
        yield last_day(", ".join(TABLES))
        return
    steps = scope.rows(_STEPS)
    for row in steps:
        yield Finding(
            text=f"{_saved(row)} per hour need not cross racks.",
            state=PROBLEM,
            next_step=reasons.replica_step(row),
            evidence_table="replica_advice",
            evidence=row,
        )
    advised = {client_text(row) for row in steps}
    for row in scope.rows(_RACKS):
        yield _racks(row, is_advised=client_text(row) in advised)
    for row in scope.rows(_PRODUCER_STEPS):
        yield Finding(
            text=f"{_saved(row)} that is produced per hour need not cross racks.",
            state=PROBLEM,
            next_step=reasons.producer_rack_step(row),
            evidence_table="producer_rack_advice",
            evidence=row,
        )


def _saved(row: Row) -> str:
    saved = row["saved_bytes_per_hour"]
    size = "An unknown number of bytes" if saved is None else f"{saved / _MEGABYTE:,.1f} MB"
    owner = client_text(row) if row["principal"] else row["topic"] or row["unnamed_topic_id"]
    return f"{owner}: {size}" if owner else size


def _racks(row: Row, *, is_advised: bool) -> Finding:
    is_wrong = (row["cross_rack_share"] or 0) > _FEW
    is_to_do = is_wrong and not is_advised and not row["is_internal"]
    return Finding(
        text=(
            f"{client_text(row)} {_own_rack(row)}, and read {row['bytes'] / _MEGABYTE:,.1f} MB, "
            f"the largest part in {row['read_rack'] or 'a rack that is not known'}: "
            f"{_crossed(row)} ({row['verdict']})."
        ),
        state=PROBLEM if is_to_do else FACT,
        next_step=_next_step(row) if is_to_do else None,
        evidence_table="client_racks",
        evidence=row,
    )


def _crossed(row: Row) -> str:
    if row["cross_rack_share"] is None:
        return "how much of it crossed racks is not known"
    crossed = f"{row['cross_rack_bytes'] / _MEGABYTE:,.1f} MB of it crossed racks"
    of_known = " of what is known" if row["unknown_rack_bytes"] else ""
    return f"{crossed}, {row['cross_rack_share']:.0%}{of_known}"


def _own_rack(row: Row) -> str:
    if row["declared_rack"]:
        return f"is in {row['declared_rack']}"
    if row["configured_rack"]:
        return f"has client.rack={row['configured_rack']}, which its fetches do not name"
    if row["inferred_rack"]:
        return f"names no rack, and its address is in {row['inferred_rack']}"
    return "names no rack"


def _next_step(row: Row) -> str:
    if row["verdict"] == "no_rack":
        rack = row["inferred_rack"] or "its own rack"
        return f"set client.rack to {rack} at {client_text(row)}"
    return "see preferred_replicas for what brokers answered it"
