"""Why a client, a group or a move suffers: its symptoms, their causes, and what to do."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import quotas, reads
from quotaflow.pipelines.areas.finding import FACT, NOW, Finding, RowProblem
from quotaflow.pipelines.areas.question import Question, Row, any_of, everywhere, filled
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.programs import program_of
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.principal_name import bare

if TYPE_CHECKING:
    from quotaflow.pipelines.areas.subject import Subject

NAME = "diagnoses"
TABLES = ("diagnoses",)

DIAGNOSES = Question(
    "SELECT * FROM diagnoses WHERE {of_cluster} AND ((subject_kind = 'client' "
    "AND {is_program} AND {within:since:until}) OR (subject_kind = 'group' AND {is_own_group}) "
    "OR (subject_kind = 'topic' AND {is_named_topic}) "
    "OR (subject_kind = 'broker' AND {is_named_broker} AND {within:since:until}))",
    "subject_kind, until DESC, principal, client_id, group_id, topic, broker_id, api, symptom, "
    "since, rank",
)
"""The causes of each symptom of a name, those that last first."""
OF_CLUSTER = Question(
    "SELECT * FROM diagnoses WHERE {of_cluster} AND {within:until}",
    "symptom = 'cost', rank, is_ongoing DESC, waited_ms DESC NULLS LAST, lag DESC NULLS LAST, "
    "subject_kind, principal, client_id, group_id, topic, api, symptom, since",
)
"""The causes of each symptom in a cluster, the first cause of each first."""
MEANS = """
    sum(throttle_time_ms) / sum(timed_requests) AS throttle_ms,
    sum(request_queue_time_ms) / sum(timed_requests) AS request_queue_ms,
    sum(local_time_ms) / sum(timed_requests) AS local_ms,
    sum(CASE WHEN api = 'PRODUCE' THEN remote_time_ms ELSE 0 END) / sum(timed_requests)
        AS replicas_ms,
    sum(response_queue_time_ms) / sum(timed_requests) AS response_queue_ms,
    sum(send_time_ms) / sum(timed_requests) AS send_ms
FROM request_times
WHERE {of_cluster} AND timed_requests > 0 AND api IN ('PRODUCE', 'FETCH', 'SHARE_FETCH')
"""
"""The budget of a mean request, as columns of PARTS."""
INCIDENTS = Question(
    "SELECT * FROM incidents WHERE {of_cluster}",
    "state DESC, subjects DESC, confidence DESC NULLS LAST, since DESC NULLS LAST, symptom, cause, "
    "origin",
)
"""Symptoms of one cause: open ones first, then those that hit most."""
OPEN = INCIDENTS.where("state = 'open'")
"""Incidents that go on."""
OF_CLIENTS = ("slow", "failing")
"""Symptoms of clients: of these alone the tables have ends."""
_OF_CLIENTS = any_of("symptom", OF_CLIENTS)
_SUFFERED = ("slow", "failing", "rebalances", "unavailable")
"""Symptoms that no other area has as a problem."""
# Of clients a day is diagnosed, so the start of a longer incident moves: it was an event before.
# An incident can go on within ten minutes of its end. The start of a lag moves while its group
# reads: it is another event once other groups lag.
EVENTS = Question(
    f"""
SELECT * FROM (
    SELECT
        *,
        CASE
            WHEN state = 'ended' THEN until + INTERVAL 10 MINUTE
            WHEN {_OF_CLIENTS} THEN since
            ELSE coalesce(until, since)
        END AS event_time,
        CASE WHEN state = 'ended' THEN until WHEN symptom <> 'lag' THEN since END AS began_or_ended,
        CASE
            WHEN state <> 'ended' AND (since IS NULL OR symptom = 'lag')
                THEN array_join(names, ', ')
        END AS of_names
    FROM incidents
    WHERE {{of_cluster}}
        AND (state = 'ended' OR NOT {_OF_CLIENTS} OR since > until - INTERVAL 23 HOUR)
) AS events
WHERE {{within:event_time}}
""",
    "event_time DESC",
)
"""Incidents that began or ended."""


def _suffering(rows: Sequence[Row]) -> str:
    shown = [reasons.incident(row) for row in rows[:_MAX_INCIDENTS]]
    more = len(rows) - len(shown)
    return "; ".join([*shown, *([counted(more, "more incident")] if more else [])]) + "."


SUFFERS = RowProblem(
    code="client_suffers",
    severity=NOW,
    subjects="incidents in which clients wait, fail or cannot read",
    subject=("symptom", "cause", "origin", "since"),
    table="incidents",
    question=INCIDENTS.where(f"{any_of('symptom', _SUFFERED)} AND {{within:since:until}}"),
    summary=_suffering,
    action=lambda rows: texts.to_do([texts.run_why(rows[0]["names"], "what to do", "diagnoses")]),
)
PROBLEMS = (SUFFERS,)

COST = reasons.COST
OUTSIDE = "outside"
PARTS: Mapping[str, str] = {
    "throttle": "quota",
    "request_queue": "queue",
    "local": "broker",
    "replicas": "replicas",
    "response_queue": "response queue",
    "send": "sending",
    OUTSIDE: "outside the broker",
}
"""Parts of a budget in words; what is outside is no part of the sum."""
_PART_OF = {
    "quota": "throttle",
    **dict.fromkeys(("noisy_neighbour", "own_load", "busy_broker"), "request_queue"),
    **dict.fromkeys(("slow_broker", "large_requests", "slow_appends"), "local"),
    **dict.fromkeys(("slow_follower", "slow_replicas"), "replicas"),
    "busy_network": "response_queue",
    "slow_reader": "send",
}
"""The part of the budget that a cause is about; a stalled broker is about more than one."""
_LEAST_MS, _CHANGE_CHARS = 1, 100
_LEAST_OTHERS_MS, _LEAST_OTHERS = 0.05, 0.005
_SAME_MINUTE = " (perhaps after it began)"
_MAX_INCIDENTS = 5
_SAME_IN = {"quota": "quota_usage", "out_of_range": "read_problems"}
"""By the cause of a client's symptom, the table whose problems say the same of the client."""
AREAS_OF = {"quota": "quotas", "out_of_range": "read problems"}
"""By the cause, the area whose findings say the same."""
Symptom = list[Row]
"""The causes of one symptom of one subject, by rank."""


def findings(scope: Scope) -> Iterator[Finding]:
    """Each cause of each symptom."""
    for causes in symptoms(scope):
        for row in causes:
            is_first = row["rank"] == 1
            yield Finding(
                text=_text(row),
                problem=SUFFERS if is_first and row["symptom"] in _SUFFERED else None,
                next_step=step(scope, row),
                evidence_table="diagnoses",
                evidence=row,
            )


def open_incidents(most: int) -> str:
    """The query for incidents that go on, in all clusters."""
    return filled(everywhere(OPEN.first_rows), {"limit": str(most)})


def open_without_end(most: int) -> str:
    """Those of which the tables have no ends."""
    others = OPEN.where(f"NOT {_OF_CLIENTS}")
    return filled(everywhere(others.first_rows), {"limit": str(most)})


def incident(row: Mapping[str, Any]) -> str:
    """Who suffers from what and since when, without a full stop: a row of INCIDENTS."""
    times = when({**row, "is_ongoing": row["state"] == "open"})
    return f"{reasons.incident(row)}{f' ({times})' if times else ''}"


def without_repeated(scope: Scope, finding: Finding) -> Finding:
    """The finding; with the step of a diagnosis, and a fact, if that has the cause and client."""
    if finding.problem is None or finding.evidence_table not in _SAME_IN.values():
        return finding
    client = finding.evidence["client_id"]
    names = {client, client and program_of(client)}
    for row in chain.from_iterable(symptoms_if_known(scope) or ()):
        is_cause = _SAME_IN.get(row["cause"]) == finding.evidence_table
        is_client = row["principal"] == finding.evidence["principal"] and row["client_id"] in names
        if is_cause and is_client:
            return replace(finding, problem=None, state=FACT, next_step=step(scope, row))
    return finding


def symptoms_if_known(scope: Scope) -> list[Symptom] | None:
    """Symptoms of the name; None if tables cannot be asked: the area of diagnoses says why."""
    try:
        return symptoms(scope)
    except (NeverMadeError, QueryError):
        return None


def _text(row: Row) -> str:
    of_cause = cause(row)
    explained = texts.step(of_cause) if of_cause else ""
    return f"{sentence(row)} {explained}".strip() if row["rank"] == 1 else explained


def symptoms(scope: Scope) -> list[Symptom]:
    """The symptoms of the name: ongoing ones first, its own, sure ones, the longest wait, the most
    bytes. Raises as Scope.rows."""
    assert scope.about is not None
    subject = scope.about.subject
    of_subject = ("subject_kind", "principal", "client_id", "group_id", "topic", "broker_id")
    keys = (*of_subject, "api", "symptom", "since")
    grouped = groupby(scope.ask(DIAGNOSES), key=lambda row: [row[key] for key in keys])
    return sorted((list(group) for _, group in grouped), key=lambda causes: _order(subject, causes))


def _order(subject: "Subject", causes: Symptom) -> tuple[bool, bool, bool, float]:
    row = causes[0]
    named = {
        "client": row["principal"] in subject.principals or row["client_id"] in subject.client_ids,
        "group": row["group_id"] in subject.groups,
        "topic": row["topic"] in subject.topics,
        "broker": row["broker_id"] in subject.brokers,
    }
    amount = 0.0
    if row["symptom"] == "slow":
        amount = (row["waited_ms"] or 0.0) * (row["requests"] or 0)
    elif row["symptom"] == COST:
        amount = _cells(row)["bytes"] or 0.0
    is_sure = reasons.how_sure(row["confidence"]) == reasons.SURE
    return not row["is_ongoing"], not named[row["subject_kind"]], not is_sure, -amount


def _client(row: Row) -> str:
    return row["client_id"] or bare(row["principal"])


def sentence(row: Row) -> str:
    """What is wrong with whom, in one sentence."""
    return reasons.symptom(_cells(row))


def cause(row: Row) -> str:
    """The cause of a symptom, in one sentence without a full stop."""
    return reasons.diagnosis(_cells(row))


def change(row: Row) -> str:
    """Which config changed right before; empty if none did, or the cause says it."""
    cells = _cells(row)
    if cells["changed"] is None or row["cause"] == "quota":
        return ""
    names = ("changed", "changed_by", "changed_at")
    config, principal, time = (texts.listed(cells[name], _CHANGE_CHARS) for name in names)
    # Symptoms are known by the minute: what changed in the first one may have come later.
    is_sure = row["since"] is None or str(cells["changed_at"]) < f"{row['since']:%Y-%m-%d %H:%M}"
    return f"{config} was altered by {principal} at {time}{'' if is_sure else _SAME_MINUTE}"


def step(scope: Scope, row: Row) -> str | None:
    """What to do about a cause; None if there is no advice."""
    advice = reasons.diagnosis_step(_cells(row))
    principal = row["principal"]
    if principal is None:
        return advice
    if row["cause"] == "out_of_range":
        return "; ".join(filter(None, [reads.step_of_client(scope, row), advice]))
    if row["cause"] != "quota" or row["detail"] is None or not scope.reader.is_made("quota_usage"):
        return advice
    command = quotas.raise_command(scope, principal, row["detail"])
    return advice if command is None else f"{advice}{command}"


def _cells(row: Row) -> Row:
    """A row with its signals, its facts and what a sentence calls the client; others are None."""
    cells: defaultdict[str, object] = defaultdict(lambda: None)
    cells |= {each["signal"]: each["value"] for each in row["evidence"] or ()}
    cells |= row
    cells |= {each["fact"]: each["text"] for each in row["facts"] or ()}
    if row["symptom"] == COST:
        cells["advice"] = row["cause"]
    if row["principal"] is not None:
        cells["client"] = _client(row)
    is_slow = row["symptom"] == "slow"
    if is_slow and row["share"] is not None and row["cause"] != "not_explained":
        cells["first_ms"] = _part_ms(row)
    return cells


def _part_ms(row: Row) -> float:
    """What requests wait in the cause's part, as the budget has it, in ms.

    The share of a cause is less than that part, by what is normal there. So a sentence has no share
    of the part: it would look like that of the cause.
    """
    in_part_ms = dict(parts(row)).get(_PART_OF.get(row["cause"], ""))
    ms: float = row["share"] * row["waited_ms"] if in_part_ms is None else in_part_ms
    return ms


def budget(parts: Sequence[tuple[str, float]], chars: int) -> str:
    """The parts of a wait, the longest first: quota 204 ms · broker 21 ms.

    Short ones, and those for which a line of so many characters has no room, are one sum.
    """
    longest = sorted(parts, key=lambda part: -part[1])
    worded = [(PARTS[part], ms) for part, ms in longest if ms >= _LEAST_MS and part in PARTS]
    in_all = sum(ms for part, ms in parts if part != OUTSIDE)
    for count in range(len(worded), 0, -1):
        others = in_all - sum(ms for part, ms in worded[:count] if part != PARTS[OUTSIDE])
        # Less does not show in a sum of rounded parts.
        is_shown = others >= max(_LEAST_OTHERS_MS, _LEAST_OTHERS * in_all)
        shown = [*worded[:count], *([("others", others)] if is_shown else [])]
        line = " · ".join(f"{part} {texts.duration(ms)}" for part, ms in shown)
        if len(line) <= chars:
            return line
    return ""


def parts(row: Row) -> list[tuple[str, float]]:
    """The budget of a row of diagnoses, or of one with these columns."""
    if row.get("budget"):
        return [(each["part"], each["ms"]) for each in row["budget"]]
    measured = [(part, row[f"{part}_ms"]) for part in PARTS if row.get(f"{part}_ms") is not None]
    if row.get("waited_ms") is None:
        return measured
    return [*measured, ("unknown", max(0.0, row["waited_ms"] - sum(ms for _, ms in measured)))]


def when(row: Row) -> str:
    """When a symptom was there, and that it ended if it did; empty if no time is known."""
    shown = period(row)
    return shown if row["is_ongoing"] or not shown else f"ended: {shown}"


def period(row: Row) -> str:
    """When a symptom was there; empty if no time is known."""
    since, until = row["since"], row["until"]
    if since is None:
        is_over = until is not None and not row["is_ongoing"]
        return f"before {until:%Y-%m-%d %H:%M} UTC" if is_over else ""
    if row["is_ongoing"]:
        return f"since {since:%Y-%m-%d %H:%M} UTC"
    return f"{since:%Y-%m-%d %H:%M} to {until:%H:%M} UTC"
