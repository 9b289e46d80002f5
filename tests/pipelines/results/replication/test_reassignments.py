"""Replicas that requests place and report in sync, and how far behind followers are."""

import json

from quotaflow.pipelines.results.declared import result_of

from ....rows import Row, at
from ....rule_rows import compute
from .throttle_rows import fetch, of_cluster, part, request

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


def line(second: float, api: str, body: Row | str) -> Row:
    return request(second, api, body, cluster_id="c")


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


def test_replicas_are_read_from_bodies() -> None:
    rows = compute(result_of("reassignment_changes"), requests=LINES)
    names = ("change", "topic_id", "topic", "partition", "replica_id", "place", "error_code")
    seconds = {at(second): second for second in range(9)}
    changes = {(seconds[row["event_time"]], *(row[name] for name in names)) for row in rows}
    assert changes == CHANGES
    assert len(rows) == len(CHANGES)
    assert {(row["principal"], row["client_id"]) for row in rows} == {("User:admin", "tool")}


def follower(second: float, offset: int, end: int, size: int, **others: object) -> Row:
    one = part(size, fetch_offset=offset, high_watermark=end)
    return fetch(second, 1, 2, one) | others


FETCH_ROWS = of_cluster(
    [
        follower(1, 100, 500, 4_000),
        follower(9, 200, 520, 5_000),
        follower(11, 300, 530, 0),
        follower(12, 530, 530, 70),
        follower(13, 600, 530, 70),
        follower(14, 100, 500, 10, replica_id=None),
        follower(15, 0, 9, 0, partitions=None),
        fetch(16, 1, 2, part(0, fetch_offset=1, error_code=6)),
    ]
)


def test_how_far_behind_followers_are() -> None:
    lags = compute(result_of("replica_lag"), fetches=FETCH_ROWS)
    first, last = sorted(lags, key=lambda row: row["event_time"])
    names = ("fetches", "bytes", "last_bytes", "first_offset", "last_offset", "high_watermark")
    names += ("lag", "max_lag")
    assert tuple(first[name] for name in names) == (2, 9_000, 5_000, 100, 200, 520, 320, 400)
    assert tuple(last[name] for name in names) == (1, 0, 0, 300, 300, 530, 230, 230)
    assert (first["broker_id"], first["replica_id"], first["topic_id"]) == (1, 2, "id1")
    assert (first["last_time"], last["event_time"]) == (at(9), at(10))


def test_of_fetches_at_one_time_the_one_with_the_most_is_the_last() -> None:
    fetches = of_cluster([follower(1, 300, 500, 0), follower(1, 200, 520, 0)])
    for rows in (fetches, fetches[::-1]):
        (lag,) = compute(result_of("replica_lag"), fetches=rows)
        assert (lag["last_offset"], lag["high_watermark"], lag["lag"]) == (200, 520, 320)


def test_a_client_that_says_it_is_a_follower_and_asks_before_all_offsets_has_no_lag() -> None:
    fetches = of_cluster([follower(1, -(2**63), 500, 0)])
    (row,) = compute(result_of("replica_lag"), fetches=fetches)
    assert (row["fetches"], row["lag"], row["max_lag"]) == (1, None, None)
