"""The demo's throttled move, as the log of the real cluster shows it."""

from datetime import UTC
from pathlib import Path

from .drive import Run
from .tables_read import query


def test_a_move_is_told_from_its_request_to_its_end(filled: Path, run: Run) -> None:
    move = run.report.move
    (row,) = query(filled, "SELECT * FROM reassignments WHERE topic = 'bulk'")
    assert (row["state"], row["replica_id"]) == ("done", move.to_broker)
    assert (row["requested_by"], row["leader_id"]) == ("User:admin", move.from_broker)
    assert row["requested_by_client_id"] == "reassign-partitions-tool"
    assert row["requested_time"] < row["joined_time"]


def test_what_came_while_it_moved_is_what_was_there(filled: Path, run: Run) -> None:
    moves = query(
        filled,
        "SELECT late.* FROM replica_lag AS late INNER JOIN topic_ids "
        "ON late.topic_id = topic_ids.topic_id "
        f"WHERE topic_ids.topic = 'bulk' AND late.replica_id = {run.report.move.to_broker} "
        "ORDER BY late.event_time",
    )
    lags = [row["lag"] for row in moves]
    assert lags == sorted(lags, reverse=True)
    moved = sum(row["bytes"] for row in moves)
    lines = run.logged_of("FETCH")
    at_leader = sum(
        partition["recordsSizeInBytes"]
        for line in lines
        if line["request"].get("replicaState", {}).get("replicaId") == run.report.move.to_broker
        for topic in line["response"]["responses"]
        if topic["topicId"] == moves[0]["topic_id"]
        for partition in topic["partitions"]
    )
    assert 0.9 * at_leader <= moved <= at_leader
    assert all(row["event_time"].tzinfo in {UTC, row["last_time"].tzinfo} for row in moves)
