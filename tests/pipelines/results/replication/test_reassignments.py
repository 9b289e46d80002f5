"""What requests say of replicas that move, and how far behind followers are: each in one frame."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results.replication import reassignment_changes, replica_lag
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.reassignments import REASSIGNMENT_CHANGES, REPLICA_LAG
from quotaflow.schemas.tables.requests import REQUESTS

from ..reads.replica_rows import Row, answered, at, fetch, frame

# As a real cluster wrote them, the ids made short.
REASSIGN = {
    "request": {
        "topics": [
            {"name": "bulk", "partitions": [{"partitionIndex": 0, "replicas": [2, 1]}]},
            {
                "name": "exports",
                "partitions": [
                    {"partitionIndex": 0, "replicas": None},
                    {"partitionIndex": 1, "replicas": [9]},
                ],
            },
        ]
    },
    "response": {
        "errorCode": 0,
        "responses": [
            {"name": "exports", "partitions": [{"partitionIndex": 0, "errorCode": 0}]},
            {"name": "bulk", "partitions": [{"partitionIndex": 0, "errorCode": 0}]},
            {"name": "exports", "partitions": [{"partitionIndex": 1, "errorCode": 39}]},
        ],
    },
}
IN_SYNC = {
    "request": {
        "topics": [
            {
                "topicId": "id1",
                "partitions": [
                    {"partitionIndex": 0, "newIsrWithEpochs": [{"brokerId": 1}, {"brokerId": 2}]},
                    {"partitionIndex": 1, "newIsr": [3]},
                ],
            }
        ]
    },
    "response": {
        "errorCode": 0,
        "topics": [{"topicId": "id1", "partitions": [{"partitionIndex": 0, "errorCode": 108}]}],
    },
}
REFUSED = {
    "request": {
        "topics": [{"name": "bulk", "partitions": [{"partitionIndex": 3, "replicas": [2]}]}]
    },
    "response": {"errorCode": 31, "responses": []},
}


def line(second: float, api: str, body: object) -> Row:
    row = {"cluster_id": "c", "event_time": at(second), "record_time": at(second), "broker_id": 1}
    row |= {"api": api, "principal": "User:admin", "client_id": "tool"}
    return row | {"body": body if isinstance(body, str) else json.dumps(body)}


LINES = [
    line(1, "ALTER_PARTITION_REASSIGNMENTS", REASSIGN),
    line(1, "ALTER_PARTITION_REASSIGNMENTS", REASSIGN),
    line(2, "ALTER_PARTITION", IN_SYNC),
    line(3, "ALTER_PARTITION_REASSIGNMENTS", REFUSED),
    line(4, "ALTER_PARTITION_REASSIGNMENTS", json.dumps(REASSIGN)[:40]),
    line(5, "METADATA", REASSIGN),
]
CHANGES = {
    (1, "requested", None, "bulk", 0, 2, 0, 0),
    (1, "requested", None, "bulk", 0, 1, 1, 0),
    (1, "cancelled", None, "exports", 0, None, None, 0),
    (1, "requested", None, "exports", 1, 9, 0, 39),
    (2, "in_sync", "id1", None, 0, 1, None, 108),
    (2, "in_sync", "id1", None, 0, 2, None, 108),
    (2, "in_sync", "id1", None, 1, 3, None, 0),
    (3, "requested", None, "bulk", 3, 2, 0, 31),
    (4, "capped", None, None, None, None, None, None),
}


@pytest.mark.spark
def test_what_was_asked_of_replicas_is_read_from_bodies(spark: SparkSession) -> None:
    facts = reassignment_changes.result().relevant_facts(frame(spark, REQUESTS.arrow, LINES))
    changes = reassignment_changes.changes(RuleInputs(facts))
    assert changes.columns == REASSIGNMENT_CHANGES.column_names
    names = ("change", "topic_id", "topic", "partition", "replica_id", "place", "error_code")
    rows = changes.collect()
    seconds = {at(second): second for second in range(9)}
    assert {
        (seconds[row["event_time"].astimezone(at(0).tzinfo)], *(row[name] for name in names))
        for row in rows
    } == CHANGES
    assert len(rows) == len(CHANGES)
    assert {row["principal"] for row in rows} == {"User:admin"}


def follower(second: float, offset: int, end: int, size: int, **others: Any) -> Row:
    row = fetch(second, 1, answered(size, fetch_offset=offset, high_watermark=end), replica_id=2)
    return row | {"cluster_id": "c"} | others


FETCH_ROWS = [
    follower(1, 100, 500, 4_000),
    follower(9, 200, 520, 5_000),
    follower(11, 300, 530, 0),
    follower(12, 530, 530, 70),
    follower(13, 600, 530, 70),
    follower(14, 100, 500, 10, replica_id=None),
    follower(15, 0, 9, 0, partitions=None),
    follower(16, 0, 500, 0) | {"partitions": [answered(0, fetch_offset=1, error_code=6)]},
]


@pytest.mark.spark
def test_followers_that_are_behind_tell_how_far(spark: SparkSession) -> None:
    facts = replica_lag.result().relevant_facts(frame(spark, FETCHES.arrow, FETCH_ROWS))
    lags = replica_lag.lags(RuleInputs(facts))
    assert lags.columns == REPLICA_LAG.column_names
    first, last = (row.asDict() for row in lags.orderBy("event_time").collect())
    names = ("fetches", "bytes", "first_offset", "last_offset", "high_watermark", "lag", "max_lag")
    assert tuple(first[name] for name in names) == (2, 9_000, 100, 200, 520, 320, 400)
    assert tuple(last[name] for name in names) == (1, 0, 300, 300, 530, 230, 230)
    assert (first["broker_id"], first["replica_id"], first["topic_id"]) == (1, 2, "id1")
    assert first["last_time"].astimezone(at(0).tzinfo) == at(9)
    assert last["event_time"].astimezone(at(0).tzinfo) == at(10)


@pytest.mark.spark
def test_who_says_to_be_a_follower_and_asks_from_before_all_offsets_has_no_lag(
    spark: SparkSession,
) -> None:
    fetches = [follower(1, -(2**63), 500, 0)]
    facts = replica_lag.result().relevant_facts(frame(spark, FETCHES.arrow, fetches))
    (row,) = replica_lag.lags(RuleInputs(facts)).collect()
    assert (row["fetches"], row["lag"], row["max_lag"]) == (1, None, None)
