"""When a move ends: by the log, by snapshots, by the request after it."""

from collections import defaultdict

import pyarrow as pa

from quotaflow.pipelines.results.declared import result_of

from ....delta_tables import NOON
from ....rows import Row
from ....rule_rows import compute
from .shared_views import rows_of_text
from .throttle_rows import in_sync, of_cluster, reassign, seen


def replica(second: float, broker_id: int, *, is_in_sync: bool = True, **others: object) -> Row:
    """A replica of partition 0 as a snapshot found it."""
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
    "fewer, and nothing shows which are in sync": (
        [reassign(10, "orders", SHRUNK)],
        [],
        {10: None},
    ),
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
    "moved away and back between two snapshots": (
        [reassign(10, "orders", [1, 4]), in_sync(20, "id1", 1, 4), reassign(30, "orders", [1, 2])],
        [*BEFORE, replica(600, 2, is_in_sync=False), replica(900, 2)],
        {10: 20, 30: 900},
    ),
    "a topic of that name is made again": (
        [reassign(10, "orders", SHRUNK)],
        [
            *(row | {"topic_id": "id0"} for row in BEFORE),
            *(replica(0, n, topic_id="id0", is_removed=True) for n in (1, 2, 3)),
        ],
        {10: None},
    ),
}


TIME = pa.timestamp("us", "UTC")
MOVES = pa.schema([("cluster_id", pa.string()), ("since", TIME), ("until", TIME)])


def test_when_a_move_ends() -> None:
    requests = [row for name, case in CASES.items() for row in of_cluster(case[0], name)]
    named = {"event_time": NOON, "topic": "orders", "topic_id": "id1"}
    moves = rows_of_text(
        "FROM moves",
        MOVES,
        reassignment_changes=compute(result_of("reassignment_changes"), requests=requests),
        topic_names=[named | {"cluster_id": name} for name in CASES],
        replicas=[row for name, case in CASES.items() for row in of_cluster(case[1], name)],
    )
    ends = defaultdict[str, dict[float, float | None]](dict)
    for move in moves:
        since, until = (
            time and (time - NOON).total_seconds() for time in (move["since"], move["until"])
        )
        ends[move["cluster_id"]][since] = until
    assert ends == {name: case[2] for name, case in CASES.items()}
