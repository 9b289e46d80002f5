"""Why a client, a group or a move suffers: its symptoms, their causes, and what to do."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import quotas
from quotaflow.pipelines.areas.finding import NOW, Finding, RowProblem
from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.diagnosis import NOT_EXPLAINED
from quotaflow.udfs.rules.principal_name import bare

if TYPE_CHECKING:
    from quotaflow.pipelines.areas.subject import Subject

NAME = "diagnoses"
TABLES = ("diagnoses",)

DIAGNOSES = Question(
    "SELECT * FROM diagnoses WHERE {of_cluster} AND ((subject_kind = 'client' "
    "AND {is_program} AND {within:since:until}) OR (subject_kind = 'group' AND {is_own_group}) "
    "OR (subject_kind = 'topic' AND {is_named_topic}))",
    "subject_kind, until DESC, principal, client_id, group_id, topic, api, symptom, since, rank",
)
"""The causes of each symptom of a name, those that last first."""
OF_CLUSTER = Question(
    "SELECT * FROM diagnoses WHERE {of_cluster} AND {within:until}",
    "rank, is_ongoing DESC, waited_ms DESC NULLS LAST, lag DESC NULLS LAST, subject_kind, "
    "principal, client_id, group_id, topic, api, symptom, since",
)
"""The causes of each symptom in a cluster, the first cause of each first."""
WAITS = """
SELECT
    api,
    sum(timed_requests) AS requests,
    sum(waited_time_ms) / sum(timed_requests) AS waited_ms,
    sum(throttle_time_ms) / sum(timed_requests) AS throttle_ms,
    sum(request_queue_time_ms) / sum(timed_requests) AS request_queue_ms,
    sum(local_time_ms) / sum(timed_requests) AS local_ms,
    sum(CASE WHEN api = 'PRODUCE' THEN remote_time_ms ELSE 0 END) / sum(timed_requests)
        AS replicas_ms,
    sum(response_queue_time_ms) / sum(timed_requests) AS response_queue_ms,
    sum(send_time_ms) / sum(timed_requests) AS send_ms
FROM request_times
WHERE {of_cluster} AND {is_client} AND {within:event_time} AND timed_requests > 0
    AND api IN ('PRODUCE', 'FETCH', 'SHARE_FETCH')
GROUP BY api
ORDER BY sum(waited_time_ms) DESC, api
"""
"""How long requests of a name wait, and on what."""
SUFFERS = RowProblem(
    code="client_suffers",
    severity=NOW,
    subjects="clients that wait or fail",
    subject=("principal", "client_id"),
    table="client_diagnoses",
    question=Question(
        "SELECT * FROM client_diagnoses WHERE {of_cluster} AND rank = 1 AND {within:since:until}",
        "waited_ms DESC NULLS LAST, principal, client_id, api",
    ),
    summary=lambda rows: f"Clients wait or fail: {texts.names(map(_client, rows))}.",
)
PROBLEMS = (SUFFERS,)

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
_LEAST_MS, _CHANGE_CHARS = 1, 100
Symptom = list[Row]
"""The causes of one symptom of one subject, by rank."""


def findings(scope: Scope) -> Iterator[Finding]:
    """Each cause of each symptom."""
    for causes in symptoms(scope):
        for row in causes:
            is_first = row["rank"] == 1
            yield Finding(
                text=_text(row),
                problem=SUFFERS if is_first and row["subject_kind"] == "client" else None,
                next_step=step(scope, row),
                evidence_table="diagnoses",
                evidence=row,
            )


def _text(row: Row) -> str:
    of_cause = cause(row)
    explained = texts.step(of_cause) if of_cause else ""
    return f"{sentence(row)} {explained}".strip() if row["rank"] == 1 else explained


def symptoms(scope: Scope) -> list[Symptom]:
    """The symptoms of the name, those that last first, then its own. Raises as Scope.rows."""
    assert scope.about is not None
    subject = scope.about.subject
    of_subject = ("subject_kind", "principal", "client_id", "group_id", "topic")
    keys = (*of_subject, "api", "symptom", "since")
    grouped = groupby(scope.ask(DIAGNOSES), key=lambda row: [row[key] for key in keys])
    return sorted((list(group) for _, group in grouped), key=lambda causes: _order(subject, causes))


def _order(subject: "Subject", causes: Symptom) -> tuple[bool, bool, float]:
    row = causes[0]
    named = {
        "client": row["principal"] in subject.principals or row["client_id"] in subject.client_ids,
        "group": row["group_id"] in subject.groups,
        "topic": row["topic"] in subject.topics,
    }
    waits = (row["waited_ms"] or 0.0) * (row["requests"] or 0) if row["symptom"] == "slow" else 0.0
    return not row["is_ongoing"], not named[row["subject_kind"]], -waits


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
    return f"{config} was altered by {principal} at {time}"


def step(scope: Scope, row: Row) -> str | None:
    """What to do about a cause; None if there is no advice."""
    advice = reasons.diagnosis_step(_cells(row))
    if row["cause"] != "quota" or row["detail"] is None or not scope.reader.is_made("quota_usage"):
        return advice
    command = quotas.raise_command(scope, row["detail"])
    return advice if command is None else f"{advice}: {command}"


def _cells(row: Row) -> Row:
    """A row with its signals, its facts and what a sentence calls the client; others are None."""
    cells: defaultdict[str, object] = defaultdict(lambda: None)
    cells |= {each["signal"]: each["value"] for each in row["evidence"] or ()}
    cells |= row
    cells |= {each["fact"]: each["text"] for each in row["facts"] or ()}
    if row["principal"] is not None:
        cells["client"] = _client(row)
    if row["share"] is not None and row["cause"] != NOT_EXPLAINED:
        cells["first"] = texts.share(row["share"])
    return cells


def budget(parts: Sequence[tuple[str, float]]) -> list[str]:
    """The parts of a wait, the longest first: quota 204 ms, broker 21 ms."""
    longest = sorted(parts, key=lambda part: -part[1])
    return [
        f"{PARTS[part]} {texts.duration(ms)}"
        for part, ms in longest
        if ms >= _LEAST_MS and part in PARTS
    ]


def parts(row: Row) -> list[tuple[str, float]]:
    """The budget of a row of diagnoses or of WAITS."""
    if row.get("budget"):
        return [(each["part"], each["ms"]) for each in row["budget"]]
    return [(part, row[f"{part}_ms"]) for part in PARTS if row.get(f"{part}_ms") is not None]


def when(row: Row) -> str:
    """Since when a symptom is there, and whether it still is."""
    since, until = row["since"], row["until"]
    if since is None:
        return ""
    if row["is_ongoing"]:
        return f"since {since:%Y-%m-%d %H:%M} UTC"
    return f"{since:%Y-%m-%d %H:%M} to {until:%H:%M} UTC: it ended"


def well(scope: Scope) -> tuple[str, tuple[tuple[str, float], ...]]:
    """That nothing is wrong, with how long requests wait, and their budget in ms."""
    assert scope.about is not None
    name = texts.listed(scope.about.subject.name)
    waits = scope.rows_if_made(WAITS)
    if not waits:
        return f"{name}: nothing is known to be wrong.", ()
    row = waits[0]
    requests = counted(int(row["requests"]), f"{row['api']} request")
    mean = texts.duration(row["waited_ms"])
    return f"{name} is well: {requests} waited {mean} on average.", tuple(parts(row))
