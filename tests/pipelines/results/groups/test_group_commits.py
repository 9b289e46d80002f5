"""Commits of groups, by names and ids of topics, refused, back, and without bodies."""

from typing import Any

import pytest

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.events import NO_TOPIC_ID

from .... import case_tables
from ....conftest import GOLDEN
from ....delta_tables import NOON
from ....rule_rows import Rows, compute
from . import golden_groups
from .group_rows import commit

COLUMNS = ("topic", "topic_id", "partition", "commits", "failed_commits", "error_code")
COLUMNS += ("first_offset", "last_offset", "max_offset", "went_back")
ID = "topic-1"
NAMED = {"cluster_id": "c1", "topic_id": ID, "topic": "t", "event_time": NOON, "is_removed": False}
CASES: dict[str, tuple[Rows, list[tuple[Any, ...]]]] = case_tables.table(
    __file__, "CASES", commit, ID=ID, NO_TOPIC_ID=NO_TOPIC_ID
)


@pytest.mark.parametrize("case", CASES)
def test_commits_of_a_minute(case: str) -> None:
    requests, expected = CASES[case]
    rows = compute(result_of("group_commits"), requests=requests)
    assert [tuple(row[name] for name in COLUMNS) for row in rows] == expected


def test_commits_by_two_coordinators_are_two_rows_and_name_the_generation() -> None:
    requests = [
        commit(1, {0: 7}, broker_id=2),
        commit(2, {0: 5}),
        commit(3, {0: 9}, errors={0: 22}, broker_id=2),
    ]
    rows = compute(result_of("group_commits"), requests=requests)
    columns = ("coordinator_id", "group_epoch", "last_offset", "failed_commits", "went_back")
    assert sorted(tuple(row[name] for name in columns) for row in rows) == [
        (1, 3, 5, 0, False),
        (2, 3, 7, 1, False),
    ]


def test_names_and_ids_are_one_topic() -> None:
    requests = [commit(1, {0: 5}), commit(2, {0: 6}, topic_id=ID)]
    (row,) = compute(result_of("group_commits"), requests=requests, topics=[NAMED])
    assert (row["topic"], row["topic_id"], row["last_offset"]) == ("t", ID, 6)


def test_commits_of_real_clients_in_a_transaction_by_hand_and_back() -> None:
    rows = compute(result_of("group_commits"), requests=golden_groups.requests("tx-group"))
    columns = ("client_id", "partition", "is_transactional", "last_offset", "went_back")
    assert sorted(tuple(row[name] for name in columns) for row in rows) == [
        ("by-hand", 1, False, 7, False),
        ("tx", 0, True, 100, False),
        ("tx", 1, True, 100, False),
        ("tx", 2, True, 100, False),
        ("tx-c", 0, False, 20, True),
    ]
    assert {row["client_id"]: row["member_id"] is None for row in rows} == {
        "by-hand": True,
        "tx": False,
        "tx-c": False,
    }


def test_a_commit_of_4_4_in_a_transaction_names_its_topic_by_id() -> None:
    lines = (GOLDEN / "versions" / "4.4.0.jsonl").read_bytes().splitlines()
    commits = [row for row in golden_groups.read(lines) if row["api"] == "TXN_OFFSET_COMMIT"]
    assert {row["api_version"] for row in commits} == {6}
    topic = {"topic_id": "_jEemvwXRYWFRSAdicnnTw", "topic": "read", "is_removed": False}
    named = {"cluster_id": "c1", "event_time": NOON} | topic
    rows = compute(result_of("group_commits"), requests=commits, topics=[named])
    names = ("group_id", "topic", "partition", "commits", "last_offset", "is_transactional")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("version-group", "read", 0, 1, 1, True)
    ]


@pytest.mark.parametrize("code", [0, 69, 100, 113])
def test_its_refusals_are_by_id_too(code: int) -> None:
    """GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_ID and STALE_MEMBER_EPOCH are new in version 6."""
    requests = [commit(1, {1: 5}, topic_id=ID, errors={1: code}, api="TXN_OFFSET_COMMIT")]
    (row,) = compute(result_of("group_commits"), requests=requests)
    assert (row["topic_id"], row["failed_commits"]) == (ID, int(code > 0))
    assert (row["error_code"], row["last_offset"]) == ((code, None) if code else (None, 5))
