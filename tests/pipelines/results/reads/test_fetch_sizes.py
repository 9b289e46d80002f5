"""How much fetches brought at once and what bounded it: each case is a broker of one frame."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results.reads import fetch_sizes
from quotaflow.schemas.tables.fetch_sizes import LIMITERS
from quotaflow.schemas.tables.fetches import FETCHES
from quotaflow.schemas.tables.snapshots import CLIENT_QUOTAS, CONFIGS
from quotaflow.schemas.tables.topology import TOPICS

from .replica_rows import BEFORE, Row, at, frame, seen

QUOTA_BYTES_PER_S = 900.0


def answered(size: int, partition: int = 0, limit: int | None = 1_000, **others: Any) -> Row:
    row = {"topic": None, "topic_id": "id1", "partition": partition, "bytes": size}
    row |= {"partition_max_bytes": limit, "error_code": 0, "preferred_read_replica": -1}
    return row | {"fetch_offset": 10 * partition} | others


def left_out(*partitions: int) -> list[Row]:
    return [{"topic": None, "topic_id": "id1", "partition": n} for n in partitions]


def fetch(broker_id: int, *partitions: Row, second: float = 1, **others: Any) -> Row:
    row = {"cluster_id": "c", "broker_id": broker_id, "event_time": at(second)}
    row |= {"record_time": at(second), "principal": "User:alice", "client_id": "reader"}
    row |= {"max_bytes": 5_000, "min_bytes": 1, "max_wait_ms": 500, "throttle_time_ms": 0.0}
    row |= {"partitions": list(partitions), "error_code": 0, "session_partitions": 3}
    row |= {"response_bytes": sum(part["bytes"] for part in partitions), "starved": []}
    return row | others


# The values of the first snapshot also hold before it.
AFTER = 300


def cap(broker_id: int, size: int) -> Row:
    row = seen(AFTER, cluster_id="c", entity_type="broker", entity_name=str(broker_id))
    return row | {"config_key": "fetch.max.bytes", "config_value": str(size)}


CONFIG_ROWS = [cap(3, 2_000)]
QUOTAS = [
    seen(BEFORE, cluster_id="c", user="bob", is_default_user=False, is_default_client_id=False)
    | {"is_default_ip": False, "config_key": "consumer_byte_rate", "quota": QUOTA_BYTES_PER_S}
]
TOPIC_ROWS = [
    seen(BEFORE, cluster_id="c", topic_id="id1", topic="orders"),
    seen(-1, cluster_id="c", topic_id="id1", topic="orders", is_removed=True),
    seen(BEFORE, cluster_id="d", topic_id="id1", topic="another"),
]
BOB = {"principal": "User:bob", "max_bytes": 50_000}
BOUNDED: dict[str, list[Row]] = {
    "max_bytes": [fetch(1, answered(4_000, limit=4_500), answered(1_000, 1, limit=4_500))],
    "broker_cap": [fetch(3, answered(2_000, limit=9_000))],
    "quota_window": [fetch(4, answered(9_000, limit=10_000), **BOB)],
    "partition_max_bytes": [fetch(5, answered(1_000), answered(20, 1))],
    "first_batch": [
        fetch(6, answered(1_200)),
        fetch(6, answered(5_001, limit=None)),
        fetch(6, answered(6_000, limit=9_000)),
    ],
    "drained": [
        fetch(7, answered(999)),
        fetch(7, answered(9_000, limit=10_000), max_bytes=50_000),
        fetch(7, answered(2_001, limit=None), replica_id=None),
    ],
    "wait_timeout": [
        fetch(8),
        fetch(8, answered(0)),
        fetch(8, partitions=None, response_bytes=None),
    ],
    "throttled": [fetch(9, throttle_time_ms=3.0)],
    "redirected": [
        fetch(10, answered(0, preferred_read_replica=2), answered(0, 1, preferred_read_replica=3))
    ],
    "error": [fetch(11, error_code=71), fetch(11, answered(0, error_code=6), throttle_time_ms=3.0)],
}


def computed(spark: SparkSession, fetches: list[Row]) -> dict[tuple[int, int | None], Row]:
    facts = fetch_sizes.answers(frame(spark, FETCHES.arrow, fetches))
    context = {
        "configs": frame(spark, CONFIGS.arrow, CONFIG_ROWS),
        "client_quotas": frame(spark, CLIENT_QUOTAS.arrow, QUOTAS),
        "topics": frame(spark, TOPICS.arrow, TOPIC_ROWS),
    }
    sizes = fetch_sizes.sizes(RuleInputs(facts, lookups=context), conf=QuotasSection()).collect()
    rows = {(row["broker_id"], row["replica_id"]): row.asDict(recursive=True) for row in sizes}
    assert len(rows) == len(sizes)
    return rows


@pytest.mark.spark
def test_what_bounded_an_answer_is_told_by_its_size(spark: SparkSession) -> None:
    assert BOUNDED.keys() == LIMITERS.keys()
    rows = computed(spark, [row for of_limiter in BOUNDED.values() for row in of_limiter])
    limiters = {
        broker_id: {name: row[f"{name}_fetches"] for name in LIMITERS if row[f"{name}_fetches"]}
        for (broker_id, _), row in rows.items()
    }
    assert limiters == {
        fetches[0]["broker_id"]: {limiter: len(fetches)} for limiter, fetches in BOUNDED.items()
    }
    assert all(sum(row["response_sizes"]) <= row["fetches"] for row in rows.values())


STARVING = [
    fetch(1, answered(5_000, limit=9_000), starved=left_out(1, 2)),
    fetch(1, answered(5_000, limit=9_000), starved=left_out(1)),
    fetch(1, answered(5_001, 2, limit=9_000)),
    fetch(1, answered(10, limit=9_000), answered(1, 1, limit=9_000), starved=None),
    fetch(2, answered(6_001, topic="by name", topic_id=None), answered(6_000, topic_id="id2")),
    fetch(1, answered(7_000, limit=9_000), replica_id=2, max_bytes=10**7, session_partitions=None),
]


@pytest.mark.spark
def test_numbers_no_broker_tells_cost_no_batch(spark: SparkSession) -> None:
    most = 2**63 - 1
    odd = fetch(1, answered(2, limit=-most), answered(most - 2, 1, limit=most), max_bytes=None)
    rows = computed(spark, [odd])
    assert rows[1, None]["fetches"] == 1
    assert rows[1, None]["bound_bytes"] is None


@pytest.mark.spark
def test_partitions_that_are_left_out_show(spark: SparkSession) -> None:
    rows = computed(spark, STARVING)
    row = rows[1, None]
    assert (row["filled_fetches"], row["first_partitions"]) == (3, 2)
    assert (row["starved_fetches"], row["starved_partitions"]) == (2, 2)
    assert row["max_starved_fetches"] == 2
    served = [10_010, 1, 5_001]
    assert row["fairness"] == pytest.approx(sum(served) ** 2 / 3 / sum(n * n for n in served))
    assert (row["bytes"], row["max_response_bytes"]) == (15_012, 5_001)
    sizes = {power: n for power, n in enumerate(row["response_sizes"]) if n}
    assert sizes == {12: 3, 3: 1}
    assert (row["partitions"], row["bound_bytes"]) == (3, 5_000)
    assert row["oversized_batches"] == 1
    assert row["largest_oversized"] == [
        {"bytes": 5_001, "topic": "orders", "topic_id": "id1", "partition": 2, "fetch_offset": 20}
    ]
    unnamed = rows[2, None]["largest_oversized"]
    assert [(largest["topic"], largest["topic_id"]) for largest in unnamed] == [
        ("by name", None),
        (None, "id2"),
    ]
    follower = rows[1, 2]
    assert (follower["bytes"], follower["drained_fetches"]) == (7_000, 1)
    assert (follower["partitions"], follower["bound_bytes"]) == (None, 10**7)
    assert (follower["fairness"], follower["oversized_batches"]) == (1.0, 0)
