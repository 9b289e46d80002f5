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
    "AND hour >= {day} AND hour < {until} GROUP BY principal, client_id, topic "
    "ORDER BY bytes DESC, principal, client_id, topic"
    " LIMIT {limit}"
)
_STEPS = Question(
    "SELECT *, sum(bytes_per_hour) OVER (PARTITION BY cluster_id) AS all_bytes_per_hour "
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
        f"Clients read {texts.size(rows[0]['all_bytes_per_hour'])} per hour from remote storage."
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
        size = texts.size(row["bytes_per_hour"])
        text = f"{_reader(row)} {size} per hour from remote storage."
        yield REMOTE_READ.of_row(row, text, reasons.remote_read_step(row))


def _read(row: Row) -> str:
    waited = row["empty_time_ms"]
    wait = f" It waited {texts.duration(waited)} for empty answers." if waited else ""
    return (
        f"{client_text(row)} read {texts.size(row['bytes'])} of {row['topic']} from remote "
        f"storage in {counted(row['fetches'], 'answer')}, which took brokers "
        f"{texts.duration(row['fetch_time_ms'])}.{wait}"
    )


def _reader(row: Row) -> str:
    if row["principal"]:
        return f"{client_text(row)} reads"
    return f"Clients of {row['topic']} read" if row["topic"] else f"Broker {row['broker_id']} reads"
