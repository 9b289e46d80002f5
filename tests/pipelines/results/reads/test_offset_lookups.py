"""Offsets looked up and epochs checked, in bodies whole and capped."""

import json
from pathlib import Path

from quotaflow.pipelines.results.declared import result_of

from .... import rows
from ....rows import Row, minute
from ....rule_rows import compute

LIST, EPOCH = "LIST_OFFSETS", "OFFSET_FOR_LEADER_EPOCH"
Timestamps = dict[int, tuple[int, int, int]]
"""By partition: the requested timestamp, the error code and offset of the answer."""


def request(second: float, api: str, body: str | None) -> Row:
    return rows.request(second, api, body=body)


def listed(second: float, replica_id: int = -1, **topics: Timestamps) -> Row:
    """LIST_OFFSETS with an answer in another order than the request."""
    request_topics = [
        {
            "name": name,
            "partitions": [{"partitionIndex": p, "timestamp": t} for p, (t, _, _) in items],
        }
        for name, partitions in topics.items()
        for items in [partitions.items()]
    ]
    answered = [
        {
            "name": name,
            "partitions": [
                {"partitionIndex": p, "errorCode": code, "timestamp": -1, "offset": offset}
                for p, (_, code, offset) in reversed(partitions.items())
            ],
        }
        for name, partitions in reversed(topics.items())
    ]
    body = {"request": {"replicaId": replica_id, "topics": request_topics}}
    return request(second, LIST, json.dumps(body | {"response": {"topics": answered}}))


def checked(second: float, requested_epoch: int, code: int, epoch: int, end: int) -> Row:
    """OFFSET_FOR_LEADER_EPOCH of partition 0: the requested epoch, and the answer."""
    q = {"partition": 0, "currentLeaderEpoch": 9, "leaderEpoch": requested_epoch}
    a = {"errorCode": code, "partition": 0, "leaderEpoch": epoch, "endOffset": end}
    body = {
        "request": {"replicaId": -1, "topics": [{"topic": "t", "partitions": [q]}]},
        "response": {"throttleTimeMs": 0, "topics": [{"topic": "t", "partitions": [a]}]},
    }
    return request(second, EPOCH, json.dumps(body))


FACTS = [
    listed(1, t={0: (-1, 0, 50), 1: (-2, 0, 3)}, other={0: (1_700_000_000_000, 0, 7)}),
    listed(2, t={0: (-1, 0, 40)}),
    listed(3, t={0: (-1, 6, -1)}),
    listed(4, t={0: (1_700_000_000_000, 0, -1), 2: (-3, 0, 9), 3: (-77, 35, -1)}),
    listed(5, 2, t={0: (-4, 0, 8)}),
    listed(61, t={0: (-1, 0, 60)}),
    checked(6, 4, 0, 4, 50),
    checked(7, 4, 0, 3, 45),
    checked(8, 4, 0, -1, -1),
    checked(9, 4, 74, -1, -1),
    request(10, LIST, '{"omitted_bytes":300000}'),
    request(11, LIST, None),
    request(12, LIST, '{"request":{"topics":[{"name":"t","partitions":'
                      '[{"partitionIndex":9,"timestamp":-1}]}]},"response":null}'),
    request(13, LIST, '{"request":{"topics":[]},"response":{"topics":[]}}'),
    request(14, "METADATA", '{"request":{"topics":[]}}'),
    request(15, LIST, '{"request":'),
    request(16, LIST, '{"request":{"topics":[{"name":"t"}]}}'),
    request(17, LIST, '{"request":{"topics":[{"name":"half","partitions":'
                      '[{"partitionIndex":0,"timestamp":-1}]}]},"response":{"topics":[null,'
                      '{"name":"half","partitions":[{"partitionIndex":0,"errorCode":0,"offset":4},'
                      'null]}]}}'),
]  # fmt: skip
NAMES = ("replica_id", "api", "topic", "partition", "position", "error_code")
VALUES = ("requests", "last_offset", "diverged_answers")
EXPECTED = {
    (0, None, LIST, "t", 0, "latest", 0): (2, 40, 0),
    (0, None, LIST, "t", 0, "latest", 6): (1, None, 0),
    (0, None, LIST, "t", 1, "earliest", 0): (1, 3, 0),
    (0, None, LIST, "other", 0, "by_timestamp", 0): (1, 7, 0),
    (0, None, LIST, "t", 0, "by_timestamp", 0): (1, None, 0),
    (0, None, LIST, "t", 2, "max_timestamp", 0): (1, 9, 0),
    (0, None, LIST, "t", 3, "unknown", 35): (1, None, 0),
    (0, 2, LIST, "t", 0, "earliest_local", 0): (1, 8, 0),
    (1, None, LIST, "t", 0, "latest", 0): (1, 60, 0),
    (0, None, EPOCH, "t", 0, "epoch_end", 0): (3, 45, 2),
    (0, None, EPOCH, "t", 0, "epoch_end", 74): (1, None, 0),
    (0, None, LIST, None, None, None, None): (4, None, 0),
    (0, None, LIST, "half", 0, "latest", 0): (1, 4, 0),
    (0, None, LIST, "t", 9, "latest", None): (1, None, 0),
}


def test_what_was_looked_up(golden: Path) -> None:
    lines = (golden / "lines" / "slice_envelope_n1.jsonl").read_text(encoding="utf-8").splitlines()
    requests = [line["r"] for line in map(json.loads, lines) if f'"{LIST}"' in json.dumps(line)]
    real = [request(120, LIST, json.dumps(line)) for line in requests]
    lookups = compute(result_of("offset_lookups"), requests=[*FACTS, *real])
    got = {
        (minute(row), *(row[name] for name in NAMES)): tuple(row[name] for name in VALUES)
        for row in lookups
    }
    assert len(got) == len(lookups)
    captured = {key: row for key, row in got.items() if key[0] == 2}
    assert captured == {(2, None, LIST, "broker_request_logs", 0, "latest", 0): (1, 3_304, 0)}
    assert {key: row for key, row in got.items() if key[0] < 2} == EXPECTED
