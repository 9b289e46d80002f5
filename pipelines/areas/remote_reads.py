"""Reads from remote storage (KIP-405): how much, what waits, and what would spare them."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import (
    SOMETIME,
    Finding,
    RowProblem,
    client_text,
    last_day,
)
from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.racks import cost
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

NAME = "remote_reads"
TABLES = ("remote_reads_by_hour", "remote_read_advice")

_READS = (
    "SELECT principal, client_id, topic, max(group_id) AS group_id, "
    "CAST(sum(fetches) AS BIGINT) AS fetches, CAST(sum(bytes) AS BIGINT) AS bytes, "
    "sum(fetch_time_ms) AS fetch_time_ms, sum(empty_time_ms) AS empty_time_ms "
    "FROM remote_reads_by_hour WHERE {of_cluster} AND ({is_client} OR {is_named_topic}) "
    "AND hour >= date_trunc('hour', {day}) AND hour < {until} GROUP BY principal, client_id, topic "
    "ORDER BY bytes DESC, principal, client_id, topic"
    " LIMIT {limit}"
)
_OF_STEP = "sum(CASE WHEN advice = '{}' THEN bytes END) OVER (PARTITION BY cluster_id)"
# Steps of a client, of its topic and of a broker spare the same reads.
_ALL_BYTES = ", ".join(
    _OF_STEP.format(advice)
    for advice in ("read_sooner", "raise_local_retention", "raise_remote_fetch_quota")
)
_STEPS = Question(
    f"SELECT *, greatest({_ALL_BYTES}) AS all_bytes "
    "FROM remote_read_advice WHERE {of_cluster} AND ({is_client} OR {is_named_topic})",
    "bytes_per_hour DESC NULLS LAST, advice, client_id, topic",
)
REMOTE_READ = RowProblem(
    code="remote_reads",
    severity=SOMETIME,
    subjects="steps that spare reads from remote storage",
    subject=("advice", "principal", "client_id", "topic", "broker_id"),
    table="remote_read_advice",
    question=_STEPS,
    summary=lambda rows: (
        f"Clients read {texts.size(rows[0]['all_bytes'])} from remote storage in the last day."
    ),
    action=lambda rows: texts.step(reasons.remote_read_step(rows[0])),
)
PROBLEMS = (REMOTE_READ,)


def findings(scope: Scope) -> Iterator[Finding]:
    """What each client read there on the last day, and each step that spares such reads."""
    for row in scope.facts(_READS):
        yield Finding(text=_read(row), evidence_table="remote_reads_by_hour", evidence=row)
    if not scope.is_recent:
        yield last_day("remote_read_advice")
        return
    for row in scope.ask(_STEPS):
        text = cost(row, REMOTE_READ.table, row["bytes"])
        yield REMOTE_READ.of_row(row, text, reasons.remote_read_step(row))


def _read(row: Row) -> str:
    waited = row["empty_time_ms"]
    wait = f" It waited {texts.duration(waited)} for empty answers." if waited else ""
    return (
        f"{client_text(row)} read {texts.size(row['bytes'])} of {row['topic']} from remote "
        f"storage in {counted(row['fetches'], 'answer')}, which took brokers "
        f"{texts.duration(row['fetch_time_ms'])}.{wait}"
    )
