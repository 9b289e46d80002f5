"""The head of a result's file: what it says is read, and each mistake is one clear error."""

import pytest

from quotaflow.schemas.head import HeadError
from quotaflow.schemas.result_head import ResultHead, parse
from quotaflow.schemas.table import LONG, STRING, Column

from ..cases import cases

CLUSTER_ID = Column("cluster_id", STRING, "id of the cluster")
TABLE = """\
-- kind: result
-- grain: one row per minute
-- area: quotas
-- level: sampled_log
-- description: What is used.
-- key: cluster_id
-- time: event_time
-- partitioning: event_date
"""
READ = """\
-- facts: requests
-- relevant: api = 'FETCH'
--   AND replica_id IS NULL
-- bucket: 1 min
"""
COLUMNS = """\
-- columns:
--   from requests: cluster_id
--   bytes BIGINT: bytes used
"""
SEQUENTIAL = """\
-- kind: result
-- fills: rates
-- facts: requests
-- relevant: $readings
-- scope: kind = 'new'
-- bucket: $window_s
-- lookback: 10 min
-- lookahead: 1 d
-- carry: $memory_s
-- carry_key: cluster_id, broker_id
-- warm_up: 11 s
-- split_by: cluster_id
-- runs_forward: yes
-- rolls_up: yes
-- lookups:
--   brokers: from event_time
--   topics: from coalesce(set_at,
--     event_time), reaches back
--   names: changes nothing
--   traffic: changes nothing, within the time
-- unnamed:
--   rates
--   traffic: ids of [b.topic_id FOR b IN batches] where batches IS NOT NULL
"""
QUERY = "SELECT 1"


def result(head: str) -> ResultHead:
    return parse("uses", f"{head}\n{QUERY}\n", {"requests": {"cluster_id": CLUSTER_ID}})


def test_a_result_has_a_table_and_reads_facts() -> None:
    read = result(TABLE + READ + COLUMNS)
    assert read.table is not None
    assert (read.name, read.fills, read.table.name) == ("uses", "uses", "uses")
    assert read.table.columns == (CLUSTER_ID, Column("bytes", LONG, "bytes used"))
    assert read.table.partitioning == ("event_date",)
    assert (read.facts, read.relevant) == ("requests", "api = 'FETCH' AND replica_id IS NULL")
    assert (read.bucket, read.lookback, read.carry, read.scope) == (60, 0, 0, "true")
    assert (read.lookups, read.unnamed, read.sql) == ({}, {}, QUERY)
    assert not read.runs_forward
    assert not read.rolls_up


def test_a_result_that_fills_the_table_of_another_declares_none() -> None:
    assert result(SEQUENTIAL) == ResultHead(
        name="uses",
        table=None,
        fills="rates",
        sql=QUERY,
        facts="requests",
        bucket="window_s",
        lookback=600,
        lookahead=86_400,
        relevant="$readings",
        scope="kind = 'new'",
        carry="memory_s",
        carry_key=("cluster_id", "broker_id"),
        warm_up=11,
        split_by=("cluster_id",),
        split_or_by=(),
        split_shared="false",
        runs_forward=True,
        rolls_up=True,
        lookups={
            "brokers": ("event_time", False, False),
            "topics": ("coalesce(set_at, event_time)", True, False),
            "names": (None, False, False),
            "traffic": (None, False, True),
        },
        unnamed={"rates": (), "traffic": ("batches IS NOT NULL", "[b.topic_id FOR b IN batches]")},
    )


WRONG = {
    ("-- bucket: $window_s\n", ""): "the head has no bucket",
    ("-- unnamed:", "-- columns:"): (
        "expected a field (kind, fills, facts, relevant, scope, bucket, lookback, lookahead, "
        "carry, carry_key, warm_up, split_by, split_or_by, split_shared, runs_forward, rolls_up, "
        "lookups, unnamed) or a line indented by two spaces, got: columns:"
    ),
    (
        "names: changes nothing",
        "names: nothing",
    ): "expected 'table: changes nothing' or 'table: from SQL', got: names: nothing",
    (" where batches IS NOT NULL", ""): (
        "expected 'table' or 'table: ids of SQL where SQL', got: traffic: ids of [b.topic_id FOR "
        "b IN batches]"
    ),
    ("rolls_up: yes", "rolls_up: no"): "rolls_up 'no' is none of yes",
}
"""What is replaced in the head, by what, and the error."""


@cases(("right", "wrong", "error"), *((error, *edit, error) for edit, error in WRONG.items()))
def test_a_wrong_head_is_one_clear_error(right: str, wrong: str, error: str) -> None:
    assert right in SEQUENTIAL
    with pytest.raises(HeadError) as raised:
        result(SEQUENTIAL.replace(right, wrong, 1))
    assert str(raised.value) == f"result uses: {error}"
