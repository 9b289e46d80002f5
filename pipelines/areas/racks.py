"""Reads across racks (KIP-392), and what producers send to other racks (KIP-1123)."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import SOMETIME, Finding, RowProblem, client_text, last_day
from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts

NAME = "racks"
TABLES = ("client_racks", "replica_advice", "producer_rack_advice")

WORTH = 1e7
"""Fewer bytes an hour of the last day are worth no step: as in needless_costs."""
_IS_WORTH = f"coalesce(saved_bytes_per_hour, bytes_per_hour) >= {WORTH}"
_BY_SAVED = "saved_bytes_per_hour DESC NULLS LAST, advice, client_id, topic"
PAIRS = """
SELECT
    flow,
    client_rack,
    broker_rack,
    sum(bytes) AS bytes,
    sum(cross_rack_bytes) AS cross_rack_bytes,
    sum(avoidable_bytes) AS avoidable_bytes,
    sum(avoidable_cost) AS avoidable_cost,
    max(currency) AS currency,
    min(hour) AS first_hour
FROM rack_traffic_by_hour
WHERE {of_cluster} AND hour >= date_trunc('hour', {since})
GROUP BY flow, client_rack, broker_rack
ORDER BY bytes DESC, flow, client_rack, broker_rack
"""
"""Bytes by rack of the client and of the broker, and by flow."""
OF_LAST_DAY = Question(
    """
SELECT cluster_id, coalesce(client_rack, 'not known') AS client_rack,
    coalesce(broker_rack, 'not known') AS broker_rack, sum(bytes) AS bytes
FROM rack_pairs
WHERE {of_cluster} AND flow = 'consumed' AND {within:since:until}
GROUP BY cluster_id, coalesce(client_rack, 'not known'), coalesce(broker_rack, 'not known')
""",
    "client_rack, broker_rack",
)
"""What consumers read in the last day, by rack."""
_SAVED = (
    "sum(CASE WHEN advice {} 'move_leader' THEN saved_bytes END) OVER (PARTITION BY cluster_id)"
)
# To move a leader spares bytes that other steps spare too.
_ALL_SAVED = f"greatest({_SAVED.format('<>')}, {_SAVED.format('=')}) AS all_saved"
STEPS = Question(
    f"SELECT *, {_ALL_SAVED} FROM replica_advice "
    "WHERE {of_cluster} AND ({is_client} OR {is_named_topic})",
    _BY_SAVED,
)
"""Steps that keep reads in their rack, by what they save."""
PRODUCER_STEPS = Question(
    f"SELECT *, {_ALL_SAVED} FROM producer_rack_advice "
    "WHERE {of_cluster} AND ({is_client} OR {is_named_topic})",
    _BY_SAVED,
)
"""Steps that keep produced bytes in their rack."""
_FEW = 0.1
"""As large a share may cross racks where client_racks says that a client followed."""
_RACKS = Question(
    f"SELECT *, NOT is_internal AND coalesce(cross_rack_share, 0) > {_FEW} AS is_far "
    "FROM client_racks WHERE {of_cluster} AND {is_client}",
    "cross_rack_bytes DESC NULLS LAST, principal, client_id",
)
CROSSING = _RACKS.where("NOT is_internal AND verdict <> 'followed' AND cross_rack_bytes > 0")
"""Consumers whose reads cross racks."""


def _size(saved: float | None) -> str:
    return "an unknown number of bytes" if saved is None else texts.size(saved)


RACK_STEP = RowProblem(
    code="reads_leave_rack",
    severity=SOMETIME,
    subjects="steps that keep reads in their rack",
    subject=("advice", "client_rack", "principal", "client_id", "topic", "broker_id"),
    table="replica_advice",
    question=STEPS.where(_IS_WORTH),
    summary=lambda rows: (
        f"Consumers read {_size(rows[0]['all_saved'])} from other racks in the last day "
        "that known steps spare."
    ),
    action=lambda rows: texts.step(reasons.replica_step(rows[0])),
)
PRODUCER_STEP = RowProblem(
    code="writes_leave_rack",
    severity=SOMETIME,
    subjects="steps that keep produced bytes in their rack",
    subject=("advice", "principal", "client_id", "topic"),
    table="producer_rack_advice",
    question=PRODUCER_STEPS.where(_IS_WORTH),
    # Records with a key stay with their partition.
    summary=lambda rows: (
        "Producers sent to other racks what could have stayed in their own: "
        f"up to {_size(rows[0]['all_saved'])} in the last day."
    ),
    action=lambda rows: texts.step(reasons.producer_rack_step(rows[0])),
)
NO_STEP = RowProblem(
    code="reads_cross_racks",
    severity=SOMETIME,
    subjects="consumers that read in another rack",
    subject=("principal", "client_id"),
    table="client_racks",
    question=_RACKS.where(
        f"is_far AND cross_rack_bytes - no_replica_bytes >= {WORTH} "
        "AND NOT EXISTS (SELECT 1 FROM replica_advice AS steps "
        "WHERE steps.cluster_id = every_row.cluster_id AND steps.principal = every_row.principal "
        "AND steps.client_id IS NOT DISTINCT FROM every_row.client_id)"
    ),
    summary=lambda rows: (
        f"Consumers read in another rack: {texts.names(row['client_id'] for row in rows)}."
    ),
    action=lambda rows: texts.to_do([_next_step(rows[0])]),
)
PROBLEMS = (RACK_STEP, PRODUCER_STEP, NO_STEP)


def findings(scope: Scope) -> Iterator[Finding]:
    """In which rack each consumer is and reads, and each step that keeps bytes in a rack."""
    if not scope.is_recent:
        yield last_day(", ".join(TABLES))
        return
    steps = scope.ask(RACK_STEP.question)
    for row in steps:
        text = _unknown(row) or cost(row, RACK_STEP.table, row["saved_bytes"])
        yield RACK_STEP.of_row(row, text, reasons.replica_step(row))
    with_step = {(row["principal"], row["client_id"]) for row in steps if row["principal"]}
    for row in scope.ask(_RACKS):
        of_replicas = (row["cross_rack_bytes"] or 0) - (row["no_replica_bytes"] or 0)
        is_worth = row["is_far"] and of_replicas >= WORTH
        is_to_do = is_worth and (row["principal"], row["client_id"]) not in with_step
        yield _racks(row, is_to_do=is_to_do)
    for row in scope.ask(PRODUCER_STEP.question):
        text = _unknown(row) or cost(row, PRODUCER_STEP.table, row["saved_bytes"])
        yield PRODUCER_STEP.of_row(row, text, reasons.producer_rack_step(row))


def _unknown(row: Row) -> str | None:
    if row["advice"] != "unknown_rack":
        return None
    size = texts.size(row["bytes_per_hour"])
    rack = texts.listed(row["client_rack"])
    return f"{client_text(row)} names rack {rack}, which no broker has, and moved {size} per hour."


def cost(row: Row, table: str, spared: float | None) -> str:
    """What a step of this table would have spared, in one sentence."""
    # A step of brokers is about all clients of a topic, or about all topics.
    topic = row["topic"] or row.get("unnamed_topic_id")
    cells = {
        "symptom": reasons.COST,
        "advice_table": table,
        "bytes": spared,
        "client": client_text(row) if row["principal"] else None,
        "topic": topic,
        "broker_id": None if topic else row.get("broker_id"),
    }
    return reasons.symptom({**row, **cells})


def _racks(row: Row, *, is_to_do: bool) -> Finding:
    return Finding(
        text=(
            f"{client_text(row)} {_own_rack(row)}. It read {texts.size(row['bytes'])}, "
            f"{_most(row)} in rack {row['read_rack'] or texts.NOT_KNOWN}; "
            f"{_crossed(row)}."
        ),
        problem=NO_STEP if is_to_do else None,
        is_hint=row["is_far"],
        next_step=_next_step(row) if is_to_do else None,
        evidence_table="client_racks",
        evidence=row,
    )


def _most(row: Row) -> str:
    """How much it read in the rack that it read most in: that may be less than half."""
    own = row["declared_rack"] or row["inferred_rack"] or row["claimed_rack"]
    share = None if row["unknown_rack_bytes"] else row["cross_rack_share"]
    is_half = own == row["read_rack"] and share is not None and share < 0.5  # noqa: PLR2004
    return "mostly" if is_half else "the largest part"


def _crossed(row: Row) -> str:
    if row["cross_rack_share"] is None:
        return "how many bytes crossed racks is not known"
    if not row["cross_rack_bytes"]:
        return "no byte crossed racks"
    of_known = " of the known part" if row["unknown_rack_bytes"] else ""
    share = f"{texts.share(row['cross_rack_share'])}{of_known}"
    return f"{texts.size(row['cross_rack_bytes'])} ({share}) crossed racks"


def _own_rack(row: Row) -> str:
    address = row["inferred_rack"]
    if row["declared_rack"] and address not in {None, row["declared_rack"]}:
        return f"names {row['declared_rack']} in some fetches and no rack in others, from {address}"
    if row["declared_rack"]:
        return f"is in rack {row['declared_rack']}"
    if row["configured_rack"]:
        return f"has client.rack={row['configured_rack']}, which its fetches do not name"
    if address:
        return f"names no rack, and its address is in rack {address}"
    return "names no rack"


def _next_step(row: Row) -> str:
    if row["verdict"] == "no_rack":
        rack = row["inferred_rack"] or "the rack of each"
        return f"set client.rack to {rack} at instances of {client_text(row)}"
    return "see which replica leaders name (`quotaflow show preferred_replicas`)"
