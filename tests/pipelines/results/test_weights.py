"""A request of weight 3 counts as three alike, in every result that adds requests up."""

import json
import random
import re
from collections import Counter
from typing import Any

import pytest

from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results.declared import result_of

from ... import rows
from ...rows import Row
from ...rule_rows import Rows, compute
from .reads.replica_rows import RACKS, of_cluster, with_offsets
from .reads.test_reads_split import made_up_fetch, made_up_snapshots


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


def body_of(api: str, n: int) -> str:
    """A lookup of offsets, or an answer that names a topic."""
    if api == "METADATA":
        named = [{"name": f"t{n}", "topicId": f"id{n}"}]
        return json.dumps({"request": {}, "response": {"topics": named}})
    lookup = {"partitionIndex": 0, "timestamp": -1}
    got = {"partitionIndex": 0, "errorCode": 0, "offset": n}
    return json.dumps(
        {
            part: {"topics": [{"name": "t", "partitions": [each]}]}
            for part, each in (("request", lookup), ("response", got))
        }
    )


def made_up(dice: random.Random, table: str) -> Row:
    """A fetch, or a request of an API that results count."""
    fetched = made_up_fetch(dice)
    fetched |= {"starved": dice.choice([None, [{"topic": "t1", "topic_id": None, "partition": 0}]])}
    fetched |= {"max_bytes": 1_000, "isolation_level": dice.choice([0, 1])}
    if table == "fetches":
        for part in fetched["partitions"]:
            part["partition_max_bytes"] = dice.choice([5, 1_000])
        return fetched
    for part in fetched["partitions"]:
        part |= {"in_request": True, "in_response": True}
    api = dice.choice(["PRODUCE", "FETCH", "FETCH", "LIST_OFFSETS", "METADATA"])
    return fetched | {"api": api, "local_time_ms": 1.5, "body": body_of(api, dice.choice([1, 2]))}


COUNTING = (
    *("fetch_faults", "fetch_sizes", "offset_lookups", "preferred_replicas", "rack_traffic"),
    *("remote_reads", "replica_lag", "replica_offsets", "replication_traffic", "request_times"),
    *("topic_names", "traffic"),
)
"""Results that add up what requests and fetches are or bring."""
ADDED = re.compile(r".*(bytes|fetches|requests|answers|redirects|batches)|lines|response_sizes")
NOT_ADDED = re.compile(
    r"(max|min|bound|largest|partition_max)_.*bytes.*|least_bytes|lines|fairness"
)


@pytest.mark.parametrize("name", COUNTING)
def test_each_sum_grows_with_the_weight_of_all_facts(name: str) -> None:
    result = result_of(name, Conf(racks=RACKS))
    dice = random.Random(4)
    facts = [made_up(dice, result.facts.name) for _ in range(900)]
    lookups = {lookup.table.name for lookup in result.lookups}
    seen = {table: rows for table, rows in made_up_snapshots(dice).items() if table in lookups}

    def totals(weight: float | None) -> dict[str, int]:
        weighed = [fact | {"weight": weight} for fact in facts]
        given = with_offsets(result, of_cluster({result.facts.name: weighed, **seen}))
        sums: Counter[str] = Counter()
        for row in compute(result, **given):
            for column, value in row.items():
                if ADDED.fullmatch(column) and not NOT_ADDED.fullmatch(column):
                    sums[column] += sum(value) if isinstance(value, list) else value or 0
        return dict(sums)

    once = totals(None)
    assert any(once.values())
    assert totals(3.0) == {column: 3 * total for column, total in once.items()}
