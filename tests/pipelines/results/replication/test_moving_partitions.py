"""When a move ends: by the log, by snapshots, by what came after it."""

from collections import defaultdict
from datetime import UTC

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results.replication import reassignment_changes
from quotaflow.pipelines.results.replication.moving_partitions import moving

from .throttle_rows import NOON, Row, frame, in_sync, reassign, seen


def replica(second: float, broker_id: int, *, is_in_sync: bool = True, **others: object) -> Row:
    """A replica of partition 0 as a snapshot saw it."""
    row = {"topic_id": "id1", "topic": "orders", "partition": 0, "broker_id": broker_id}
    return seen(second, **row, is_in_sync=is_in_sync, is_leader=False) | others


BEFORE = [replica(-600, broker_id) for broker_id in (1, 2, 3)]
REORDERED, SHRUNK, GROWN = [3, 1, 2], [1, 2], [1, 2, 4]
CASES: dict[str, tuple[list[Row], list[Row], dict[float, float | None]]] = {
    "targets come into sync, by the log": (
        [reassign(10, "orders", GROWN), in_sync(50, "id1", 1, 2, 3, 4)],
        BEFORE,
        {10: 50},
    ),
    "one target does not": ([reassign(10, "orders", GROWN)], BEFORE, {10: None}),
    "only another order": ([reassign(10, "orders", REORDERED)], BEFORE, {10: 10}),
    "only fewer replicas": ([reassign(10, "orders", SHRUNK)], BEFORE, {10: 10}),
    "fewer, and nobody saw who was in sync": ([reassign(10, "orders", SHRUNK)], [], {10: None}),
    "fewer, and one that stays is behind": (
        [reassign(10, "orders", SHRUNK)],
        [replica(-600, 1), replica(-600, 2, is_in_sync=False), replica(300, 2)],
        {10: 300},
    ),
    "the controller's log is not shipped": (
        [reassign(10, "orders", GROWN)],
        [*BEFORE, replica(200, 4, is_in_sync=False), replica(500, 4)],
        {10: 500},
    ),
    "the next move takes its place": (
        [reassign(10, "orders", GROWN), reassign(70, "orders", SHRUNK)],
        BEFORE,
        {10: 70, 70: 70},
    ),
    "moved away and back before anybody looked": (
        [
            reassign(10, "orders", [1, 4]),
            in_sync(20, "id1", 1, 4),
            reassign(30, "orders", [1, 2]),
        ],
        [*BEFORE, replica(600, 2, is_in_sync=False), replica(900, 2)],
        {10: 20, 30: 900},
    ),
    "a topic of that name made again": (
        [reassign(10, "orders", SHRUNK)],
        [
            *(row | {"topic_id": "id0"} for row in BEFORE),
            *(replica(0, n, topic_id="id0", is_removed=True) for n in (1, 2, 3)),
        ],
        {10: None},
    ),
}


@pytest.mark.spark
def test_a_move_ends_when_somebody_tells(spark: SparkSession) -> None:
    requests = [row | {"cluster_id": name} for name, case in CASES.items() for row in case[0]]
    saw = [row | {"cluster_id": name} for name, case in CASES.items() for row in case[1]]
    result = reassignment_changes.result()
    facts = result.relevant_facts(frame(spark, "requests", requests))
    changes = result.compute(RuleInputs(facts))
    names = spark.createDataFrame(
        [(name, "orders", "id1") for name in CASES],
        "cluster_id string, topic string, topic_id string",
    )
    ends = defaultdict[str, dict[float, float | None]](dict)
    for row in moving(changes, names, frame(spark, "replicas", saw)).collect():
        since, until = (
            time and (time.astimezone(UTC) - NOON).total_seconds()
            for time in (row["since"], row["until"])
        )
        ends[row["cluster_id"]][since] = until
    assert dict(ends) == {name: case[2] for name, case in CASES.items()}
