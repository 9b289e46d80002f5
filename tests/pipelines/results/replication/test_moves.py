"""When a move ends: by the log, by snapshots, by the request after it."""

from collections import defaultdict

import pyarrow as pa

from quotaflow.pipelines.results.declared import result_of

from .... import case_tables
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
    **case_tables.table(
        __file__,
        "CASES",
        reassign,
        in_sync,
        replica,
        GROWN=GROWN,
        BEFORE=BEFORE,
        REORDERED=REORDERED,
        SHRUNK=SHRUNK,
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
