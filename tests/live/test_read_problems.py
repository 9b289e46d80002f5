"""Reads of a real cluster that go wrong: tables show what brokers answered (KIP-392)."""

from pathlib import Path
from typing import Any

import pytest

from quotaflow.demo.traffic_reads import AGAIN, CLIENT, FIRST, PAST_END, RECORDS, TOPIC

from .drive import Run
from .tables_read import query

CASES_2_TO_4 = ("unavailable_offset", "offset_too_small", "offset_too_large")


def faults(folder: Path, fault: str) -> dict[int, dict[str, Any]]:
    """Rows of a fault by broker, of all minutes together."""
    rows = query(
        folder,
        "SELECT broker_id, sum(answers) AS answers, sum(answers_leader_has) AS held, "
        "min(min_fetch_offset) AS least, max(max_fetch_offset) AS greatest, "
        "max(leader_id) AS leader_id, max(log_start_offset) AS log_start_offset, "
        "max(preferred_read_replica) AS preferred_read_replica FROM fetch_faults "
        f"WHERE client_id = '{CLIENT}' AND fault = '{fault}' GROUP BY broker_id",
    )
    return {row["broker_id"]: row for row in rows}


@pytest.mark.shows(
    "distinguishes the four cases of an offset out of range, circles and lagging followers"
)
def test_every_answer_out_of_range_has_a_case(filled: Path, run: Run) -> None:
    reads = run.report.reads
    by_case = {case: faults(filled, case) for case in CASES_2_TO_4}
    answers = [row["answers"] for grouped in by_case.values() for row in grouped.values()]
    assert sum(answers) == reads.answers["out_of_range"]
    assert faults(filled, "out_of_range_unknown") == {}
    assert {row["leader_id"] for case_rows in by_case.values() for row in case_rows.values()} == {
        reads.leader
    }
    for broker_id in (reads.leader, reads.follower):
        deleted = by_case["offset_too_small"][broker_id]
        assert (deleted["answers"], deleted["held"]) == (1, 0)
        assert deleted["greatest"] == FIRST - 1 < deleted["log_start_offset"] == FIRST
        assert by_case["offset_too_large"][broker_id]["least"] == PAST_END
    early = by_case["unavailable_offset"]
    seen = reads.answers["unavailable"]  # mostly: who writes must be faster than who follows
    assert {id_: row["answers"] for id_, row in early.items()} == (
        {reads.follower: seen} if seen else {}
    )


def test_what_is_not_committed_is_case_1(filled: Path, run: Run) -> None:
    answers = sum(row["answers"] for row in faults(filled, "uncommitted_offset").values())
    assert answers == run.report.reads.answers["uncommitted"] > 0


def test_circles_are_seen(filled: Path, run: Run) -> None:
    reads = run.report.reads
    loop = faults(filled, "redirect_loop")
    assert {id_: (row["answers"], row["preferred_read_replica"]) for id_, row in loop.items()} == {
        reads.leader: (AGAIN, reads.follower)
    }
    spin = faults(filled, "out_of_range_spin")
    assert spin[reads.leader]["answers"] == AGAIN + 1
    assert spin[reads.leader]["least"] == spin[reads.leader]["greatest"] == PAST_END


def test_replicas_stand_where_they_told(filled: Path, run: Run) -> None:
    topic_id = "(SELECT topic_id FROM topic_ids WHERE topic = '" + TOPIC + "')"
    rows = query(
        filled,
        "SELECT broker_id, max(max_log_start_offset) AS first, max(max_high_watermark) AS high, "
        "max(max_log_end_offset) AS ends, sum(answers_to_followers) AS led FROM replica_offsets "
        f"WHERE topic = '{TOPIC}' OR topic_id = {topic_id} GROUP BY broker_id",
    )
    reported = {row["broker_id"]: row for row in rows}
    assert len(reported) == 3
    leader, follower = reported[run.report.reads.leader], reported[run.report.reads.follower]
    assert leader["first"] == follower["first"] == FIRST
    assert leader["high"] == max(row["ends"] or 0 for row in rows) > RECORDS
    assert [row["broker_id"] for row in rows if row["led"]] == [run.report.reads.leader]


def test_lookups_and_the_problem_are_told(filled: Path) -> None:
    rows = query(
        filled,
        "SELECT position, sum(requests) AS requests, max(last_offset) AS offset, "
        "sum(diverged_answers) AS diverged FROM offset_lookups "
        f"WHERE client_id = '{CLIENT}' GROUP BY position",
    )
    by_position = {row["position"]: row for row in rows}
    assert by_position.keys() == {"earliest", "latest", "epoch_end"}
    assert by_position["earliest"]["offset"] == FIRST
    assert by_position["epoch_end"]["requests"] == 2
    assert by_position["epoch_end"]["diverged"] == 1
    (problem,) = query(
        filled, f"SELECT * FROM read_problems WHERE client_id = '{CLIENT}' AND topic = '{TOPIC}'"
    )
    assert (problem["advice"], problem["resets"], problem["diverged_answers"]) == (
        "update_client",
        2,
        1,
    )
