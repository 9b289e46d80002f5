"""A request of weight 3 counts as three alike, in every result that adds requests up."""

from typing import Any

import pytest

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.results.declared import result_of

from ... import rows
from ...rows import Row
from ...rule_rows import Rows, compute


def request(second: float, api: str, size: int, **others: Any) -> Row:
    partition = {"topic": "t", "topic_id": "i", "partition": 0, "bytes": size, "error_code": 0}
    given = {"partitions": [partition] if size else None, "local_time_ms": 1.5, "error_code": 0}
    return rows.request(second, api, **given | others)


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
NAMES = ("traffic", "rack_traffic", "producer_id_uses", "quota_usage", "replication_traffic")


def counted(result: Result, requests: Rows) -> list[str]:
    """Rows as text, without what says that a number is estimated."""
    computed = compute(result, requests=requests)
    return sorted(str({k: v for k, v in row.items() if k != "is_estimated"}) for row in computed)


@pytest.mark.parametrize("name", NAMES)
def test_a_request_counts_as_often_as_its_weight(name: str) -> None:
    result = result_of(name)
    once = counted(result, ONCE)
    weighed = counted(result, [*ONCE, *(row | {"weight": 3.0} for row in WEIGHED)])
    assert weighed == counted(result, [*ONCE, *WEIGHED, *WEIGHED, *WEIGHED])
    assert weighed != once


@pytest.mark.parametrize(("weight", "is_estimated"), [(1.0, False), (2.0, True)])
def test_a_quota_that_sampled_requests_used_is_estimated(weight: float, is_estimated: bool) -> None:
    requests = [WEIGHED[0] | {"weight": weight}, ONCE[1]]
    usage = compute(result_of("quota_usage"), requests=requests)
    assert {row["quota_type"]: row["is_estimated"] for row in usage} == {
        "producer_byte_rate": is_estimated,
        "consumer_byte_rate": False,
        "request_percentage": True,
    }
