"""Moves and throttles of replication, as `quotaflow why` says them of a topic and of a broker."""

from pathlib import Path

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.finding import PROBLEM
from quotaflow.pipelines.areas.why import why
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...rows import Row, at, row, throttled, used
from ...schemas.views.view_tables import Tables, make_tables, make_tables_and_answers
from .test_why_answers import HOUR, rows_of

LISTED: Row = {"is_configured": True, "is_biting": True, "stalled_fetches": 4, "rate": 20_000.0}
SEEN: Tables = {
    "quota_usage": [used(3_600, "producer_byte_rate", 9.0, broker_id=n) for n in (1, 2)]
}
SEEN |= {
    "brokers": [row("brokers", 0, {}, broker_id=n) for n in (1, 2)],
    "topics": [row("topics", 0, {}, topic="orders")],
}


def about(folder: Path, name: str, *throttles: Row) -> list[Row]:
    """What `why` says of the replication of a name."""
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_tables_and_answers(warehouse, SEEN | {"replication_throttles": [*throttles]})
    rows = rows_of(FolderReader(warehouse), name)
    return [each for each in rows if each["area"] == "replication"]


def test_a_broker_has_the_findings_of_its_own_throttles(tmp_path: Path) -> None:
    bites = throttled(3_600, **LISTED)
    own = about(tmp_path / "own", "broker-1", bites)
    assert [each["state"] for each in own] == [PROBLEM, "fact"]
    assert own[0]["finding"].endswith("below 1 MB/s, which brokers cannot measure well.")
    assert "replication_rate_advice" in own[0]["next_step"]
    assert own[1]["finding"] == (
        "A throttle slows replication of orders to 20.0 kB/s at broker 1 (leader); "
        "4 fetches stalled."
    )
    (other,) = about(tmp_path / "other", "broker-2", bites)
    assert other["state"] == "nothing"


def test_a_throttle_that_was_deleted_is_past_and_asks_for_nothing(tmp_path: Path) -> None:
    deleted = LISTED | {"is_configured": False}
    other = throttled(3_600, topic="payments")
    (ended,) = about(tmp_path, "orders", throttled(3_540, **deleted), other)
    assert ended["finding"] == (
        "A throttle slowed replication of orders to 20.0 kB/s at broker 1 (leader); "
        "4 fetches stalled; it ended after 2026-11-21 12:59:00 UTC."
    )
    assert not ended["next_step"]


def test_a_moving_replica_without_a_limit_has_its_harm_and_the_entry_to_add(
    tmp_path: Path,
) -> None:
    unlisted = {"listed": "unlisted", "reason": "rate_without_list", "side": "follower"}
    moved = throttled(3_600, **unlisted, broker_id=3, partition=7)
    (problem,) = (
        each
        for each in about(tmp_path, "orders", moved)
        if each["evidence"].get("finding") == "moved_unlisted"
    )
    assert problem["finding"] == (
        "The throttle of orders names no moving replica of follower broker 3, and the other side "
        "has no limit: the copy can slow clients there."
    )
    assert problem["next_step"].startswith(
        "add 7:3 to follower.replication.throttled.replicas of topic orders: "
    )


def test_a_move_without_a_pace_says_why_its_end_is_not_known(tmp_path: Path) -> None:
    moving: Row = {"state": "moving", "topic": "orders", "bytes_left": 28_000_000.0}
    moving |= {"partition": 0, "replica_id": 3, "requested_time": at(3_500)}
    ends = "; its end is not known, because neither fetches nor snapshots show a pace."
    for number, (eta_s, end) in enumerate(((None, ends), (60.0, "; it ends in about 60 s."))):
        warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path / str(number))))
        moves = [row("reassignments", 3_600, moving, eta_s=eta_s)]
        make_tables(warehouse, SEEN | {"reassignments": moves})
        rows = rows_of(FolderReader(warehouse), "orders")
        (text,) = (r["finding"] for r in rows if r["evidence_table"] == "reassignments")
        assert text.endswith(f"28.0 MB are left{end}")


@cases(
    ("replica_id", "leader_id", "is_named"),
    ("to the broker", 1, 2, True),
    ("from the broker", 2, 1, True),
    ("between others", 2, 3, False),
    ("from a broker that nobody knows", 2, None, False),
)
def test_a_broker_has_the_moves_that_run_to_it_or_from_it(
    tmp_path: Path, replica_id: int, leader_id: int | None, *, is_named: bool
) -> None:
    moving: Row = {"state": "moving", "topic": "orders", "partition": 0, "eta_s": 60.0}
    moving |= {"requested_time": at(3_500), "replica_id": replica_id, "leader_id": leader_id}
    moves = [row("reassignments", 3_600, moving, bytes_left=28_000_000.0)]
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    make_tables(warehouse, SEEN | {"reassignments": moves})
    rows = rows_of(FolderReader(warehouse), "broker-1")
    texts = [each["finding"] for each in rows if each["evidence_table"] == "reassignments"]
    expected = "The move of 1 replica of orders goes on; it was requested at "
    assert [text.startswith(expected) for text in texts] == [True] * is_named


@cases(
    ("state", "is_fine"),
    ("a move that goes on", "moving", False),
    ("one that is done", "done", True),
)
def test_a_move_that_goes_on_is_not_fine(tmp_path: Path, state: str, *, is_fine: bool) -> None:
    move: Row = {"state": state, "topic": "orders", "partition": 0, "replica_id": 3}
    moves = [row("reassignments", 3_600, move, requested_time=at(3_500), joined_time=at(3_500))]
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    make_tables_and_answers(warehouse, SEEN)
    make_tables(warehouse, {"reassignments": moves})
    answered = why(FolderReader(warehouse), "orders", HOUR, "c1", config.Conf())
    assert ("replication" in answered.verdict.fine) is is_fine


def test_a_heading_has_the_number_of_problems_below_it(tmp_path: Path) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    make_tables_and_answers(
        warehouse, SEEN | {"replication_throttles": [throttled(3_600, **LISTED)]}
    )
    answered = why(FolderReader(warehouse), "broker-1", HOUR, "c1", config.Conf())
    headings = {area.name: area.heading for area in answered.with_findings}
    assert headings["replication"] == "replication (1 problem)"
    assert headings.get("changes", "changes") == "changes"
