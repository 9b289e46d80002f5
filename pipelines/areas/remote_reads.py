"""Reads from remote storage (KIP-405): how much, what waits, and what would spare them."""

from collections.abc import Iterator

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import (
    FACT,
    PROBLEM,
    Finding,
    Row,
    amount,
    client_text,
    last_day,
)
from quotaflow.pipelines.areas.scope import Scope
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
_STEPS = (
    "SELECT * FROM remote_read_advice WHERE {of_cluster} AND ({is_client} OR {is_named_topic}) "
    "ORDER BY bytes_per_hour DESC NULLS LAST, advice, client_id, topic"
    " LIMIT {limit}"
)
_SECOND_MS, _MEGABYTE = 1e3, 1e6


def findings(scope: Scope) -> Iterator[Finding]:
    """What each client read there on the last day, and each step that spares such reads."""
    for row in scope.rows(_READS):
        yield Finding(
            text=_read(row), state=FACT, evidence_table="remote_reads_by_hour", evidence=row
        )
    if not scope.is_recent:
        yield last_day("remote_read_advice")
        return
    for row in scope.rows(_STEPS):
        yield Finding(
            text=f"{_reader(row)}: {row['bytes_per_hour'] / _MEGABYTE:,.1f} MB per hour are read "
            "from remote storage.",
            state=PROBLEM,
            next_step=reasons.remote_read_step(row),
            evidence_table="remote_read_advice",
            evidence=row,
        )


def _read(row: Row) -> str:
    waited = row["empty_time_ms"]
    wait = f" It waited {amount(waited / _SECOND_MS)} s for empty answers." if waited else ""
    return (
        f"{client_text(row)} read {row['bytes'] / _MEGABYTE:,.1f} MB of {row['topic']} from remote "
        f"storage in {counted(row['fetches'], 'answer')}, which took brokers "
        f"{amount(row['fetch_time_ms'] / _SECOND_MS)} s.{wait}"
    )


def _reader(row: Row) -> str:
    if row["principal"]:
        return client_text(row)
    return row["topic"] or f"broker {row['broker_id']}"
