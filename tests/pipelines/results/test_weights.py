"""A request of weight 3 counts as three alike, in every result that adds requests up."""

from datetime import timedelta
from typing import Any

import pytest

from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.results.declared import result_of

from ...delta_tables import NOON
from ...rule_rows import Rows, compute


def request(second: float, api: str, size: int, **others: Any) -> dict[str, Any]:
    time = NOON + timedelta(seconds=second)
    row = {"cluster_id": "c", "broker_id": 1, "principal": "User:a", "client_id": "app"}
    row |= {"event_time": time, "record_time": time, "api": api, "client_address": "10.0.0.1"}
    row |= {"local_time_ms": 1.5, "throttle_time_ms": 0.0, "error_code": 0}
    partition = {"topic": "t", "topic_id": "i", "partition": 0, "bytes": size, "error_code": 0}
    return row | {"partitions": [partition] if size else None} | others


ONCE = [
    request(2, "FETCH", 40, replica_id=2),
    request(2, "FETCH", 80),
    request(3, "INIT_PRODUCER_ID", 0, producer_id=5),
]
OTHER = {"topic": "t", "topic_id": "i", "partition": 1, "bytes": 7, "error_code": 0}
WEIGHED = [
    request(1, "PRODUCE", 10),
    request(1.5, "PRODUCE", 20, partitions=[OTHER, OTHER | {"partition": 2}]),
    request(30, "HEARTBEAT", 0),
]
RESULTS = [
    result_of("traffic"),
    result_of("rack_traffic"),
    result_of("producer_id_uses"),
    result_of("quota_usage"),
    result_of("replication_traffic"),
]


def counted(result: Result, requests: Rows) -> list[str]:
    """Rows as text, without what says that a number is estimated."""
    rows = compute(result, requests=requests)
    return sorted(str({k: v for k, v in row.items() if k != "is_estimated"}) for row in rows)


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.table.name)
def test_a_request_counts_as_often_as_its_weight(result: Result) -> None:
    once = counted(result, ONCE)
    weighed = counted(result, [*ONCE, *(row | {"weight": 3.0} for row in WEIGHED)])
    assert weighed == counted(result, [*ONCE, *WEIGHED, *WEIGHED, *WEIGHED])
    assert weighed != once


@pytest.mark.parametrize(("weight", "is_estimated"), [(1.0, False), (2.0, True)])
def test_a_quota_that_sampled_requests_used_is_estimated(weight: float, is_estimated: bool) -> None:
    requests = [WEIGHED[0] | {"weight": weight}, ONCE[1]]
    rows = compute(result_of("quota_usage"), requests=requests)
    assert {row["quota_type"]: row["is_estimated"] for row in rows} == {
        "producer_byte_rate": is_estimated,
        "consumer_byte_rate": False,
        "request_percentage": True,
    }
