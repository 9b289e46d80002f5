"""Groups of all four types as rows: members, offsets, ends of partitions, and what is refused."""

from typing import Any

import pytest

from quotaflow.pipelines.kafka.cluster_state import TOPIC, ClusterState
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules.pseudonym import Pseudonyms

from ..kafka.fake_cluster import (
    CLUSTER_AUTHORIZATION_FAILED,
    NOT_LEADER,
    ON_TOPIC,
    MadeCluster,
)
from ..kafka.fake_groups import MadeGroup, MadeMember

GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND = 30, 69
UNSUPPORTED_VERSION = 35
TABLE_NAMES = ("groups", "group_assignments", "group_offsets", "partition_offsets")
JAVA_MEMBER = "app-45b17f05-b95f-4cd1-be75-3a46feb6f3c3"

GROUPS = {
    "classic": MadeGroup(
        members=(MadeMember(JAVA_MEMBER, {"b": [1, 0], "a": [2]}),), offsets={("a", 0): 40}
    ),
    "consumer": MadeGroup(
        "consumer",
        (MadeMember("m", {"a": [1]}, rack_id="az-a"),),
        offsets={("a", 1): 7},
        coordinator=2,
    ),
    "share": MadeGroup(
        "share",
        (MadeMember("s", {"a": [0, 1]}),),
        offsets={("a", 0): 30, ("a", 1): 0},
        lags={("a", 0): 12},
        protocol_type="share",
    ),
    "streams": MadeGroup(
        "streams",
        (MadeMember("t", {"0": [0, 1]}),),
        sources={"0": ["a", "b"]},
        protocol_type="streams",
        coordinator=3,
    ),
    "done": MadeGroup(offsets={("b", 0): 5}, protocol_type=""),
}


def cluster(**others: Any) -> MadeCluster:
    return MadeCluster(topics={"a": 3, "b": 2, "lost": 1}, groups=dict(GROUPS), **others)


def seen(
    made: MadeCluster, table: str, pseudonyms: Pseudonyms | None = None
) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
    """Rows of a table, and its unanswered parts as reason and identity."""
    observed = ClusterObserver(ClusterState(made), set, (), pseudonyms).observed(TABLES[table])
    gaps = [(gap.reason, *gap.identity.values()) for gap in observed.unanswered]
    return observed.rows.to_pylist(), gaps


def picked(rows: list[dict[str, Any]], *names: str) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in names) for row in rows}


def test_groups_have_their_type_state_and_coordinator() -> None:
    rows, gaps = seen(cluster(), "groups")
    assert gaps == []
    names = ("group_id", "group_type", "state", "coordinator_id", "group_epoch", "members")
    assert picked(rows, *names) == {
        ("classic", "classic", "Stable", 1, None, 1),
        ("consumer", "consumer", "Stable", 2, 7, 1),
        ("share", "share", "Stable", 1, 7, 1),
        ("streams", "streams", "Stable", 3, 7, 1),
        ("done", "classic", "Empty", 1, None, 0),
    }


def test_members_have_their_partitions_sorted() -> None:
    rows, _ = seen(cluster(), "group_assignments")
    assigned = {
        row["group_id"]: [(p["topic"], p["partition"]) for p in row["assigned_partitions"]]
        for row in rows
    }
    assert assigned == {
        "classic": [("a", 2), ("b", 0), ("b", 1)],
        "consumer": [("a", 1)],
        "share": [("a", 0), ("a", 1)],
        "streams": [("a", 0), ("a", 1), ("b", 0), ("b", 1)],
    }
    assert picked(rows, "client_address") == {("10.0.0.1",)}
    assert picked(rows, "group_id", "rack_id", "member_epoch") == {
        ("classic", None, None),
        ("consumer", "az-a", 5),
        ("share", None, 5),
        ("streams", None, 5),
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"\xff" * 9,
        b"\x00\x03\x7f\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00\x01\xff",
    ],
)
def test_an_assignment_that_cannot_be_read_is_null(content: bytes) -> None:
    member = MadeMember("m", assignment_bytes=content)
    made = MadeCluster(groups={"g": MadeGroup(members=(member,))})
    rows, _ = seen(made, "group_assignments")
    assert [row["assigned_partitions"] for row in rows] == [None]


def test_a_group_of_another_protocol_has_members_without_partitions() -> None:
    member = MadeMember("worker-1", {"a": [0]})
    made = MadeCluster(groups={"g": MadeGroup(members=(member,), protocol_type="connect")})
    rows, _ = seen(made, "group_assignments")
    assert picked(rows, "member_id", "assigned_partitions") == {("worker-1", None)}


def test_offsets_of_groups() -> None:
    rows, _ = seen(cluster(), "group_offsets")
    names = ("group_id", "topic", "partition", "committed_offset", "start_offset", "reported_lag")
    assert picked(rows, *names) == {
        ("classic", "a", 0, 40, None, None),
        ("consumer", "a", 1, 7, None, None),
        ("done", "b", 0, 5, None, None),
        ("share", "a", 0, None, 30, 12),
        ("share", "a", 1, None, 0, None),
    }


def test_a_broker_before_kip_1226_says_no_lag() -> None:
    rows, _ = seen(cluster(share_offsets_version=0), "group_offsets")
    assert {row["reported_lag"] for row in rows} == {None}


def test_only_partitions_that_a_group_committed_or_a_member_has_are_read() -> None:
    made = cluster(log_ends={("a", 0): 52})
    made.topics["unread"] = 1
    rows, gaps = seen(made, "partition_offsets")
    names = ("topic", "partition", "log_start_offset", "log_end_offset")
    assert picked(rows, *names) == {
        ("a", 0, 0, 52),
        ("a", 1, 0, 100),
        # A member has these, and no group committed there.
        ("a", 2, 0, 100),
        ("b", 0, 0, 100),
        ("b", 1, 0, 100),
    }
    assert picked(rows, "local_log_start_offset", "last_tiered_offset") == {(10, 9)}
    assert gaps == []


def test_partitions_with_remote_storage_are_read_without_a_group() -> None:
    remote = {"c": [("remote.storage.enable", "true", ON_TOPIC)]}
    remote |= {"d": [("remote.storage.enable", "false", ON_TOPIC)]}
    made = MadeCluster(
        topics={"c": 2, "d": 1}, configs={(TOPIC, name): given for name, given in remote.items()}
    )
    rows, gaps = seen(made, "partition_offsets")
    assert picked(rows, "topic", "partition") == {("c", 0), ("c", 1)}
    assert gaps == []


def test_a_partition_without_a_leader_or_refused_is_unanswered() -> None:
    made = cluster(refused={("ListOffsets", ("a", 1)): NOT_LEADER})
    made.groups["lost"] = MadeGroup(offsets={("lost", 0): 1})
    rows, gaps = seen(made, "partition_offsets")
    assert picked(rows, "topic", "partition") == {("a", 0), ("a", 2), ("b", 0), ("b", 1)}
    assert set(gaps) == {
        ("NOT_LEADER_FOR_PARTITION", "a", 1),
        ("LEADER_NOT_AVAILABLE", "lost", 0),
    }


@pytest.mark.parametrize(
    ("which", "column"), [(-4, "local_log_start_offset"), (-5, "last_tiered_offset")]
)
def test_offsets_of_tiers_that_a_broker_does_not_say_are_null(which: int, column: str) -> None:
    made = cluster(refused={("ListOffsets", which): UNSUPPORTED_VERSION})
    rows, gaps = seen(made, "partition_offsets")
    assert {row[column] for row in rows} == {None}
    assert {row["log_end_offset"] for row in rows} == {100}
    assert gaps == []


def test_a_partition_with_nothing_in_remote_storage_has_no_last_offset_there() -> None:
    rows, _ = seen(cluster(tiered=-1), "partition_offsets")
    assert {row["last_tiered_offset"] for row in rows} == {None}


def test_a_group_that_is_refused_keeps_its_rows() -> None:
    code = GROUP_AUTHORIZATION_FAILED
    made = cluster(refused={("DescribeGroups", "classic"): code, ("OffsetFetch", "done"): code})
    for table in ("groups", "group_assignments"):
        rows, gaps = seen(made, table)
        assert "classic" not in {row["group_id"] for row in rows}
        assert gaps == [("GROUP_AUTHORIZATION_FAILED", "classic")]
    _, gaps = seen(made, "group_offsets")
    assert sorted(gaps) == [
        ("GROUP_AUTHORIZATION_FAILED", "classic"),
        ("GROUP_AUTHORIZATION_FAILED", "done"),
    ]


def test_a_group_that_goes_after_it_was_listed_is_removed() -> None:
    refused = {("DescribeGroups", "done"): GROUP_ID_NOT_FOUND}
    rows, gaps = seen(cluster(refused=refused), "groups")
    assert "done" not in {row["group_id"] for row in rows}
    assert gaps == []


def test_a_broker_that_lists_no_groups_leaves_all_rows() -> None:
    refused = {("ListGroups", 2): CLUSTER_AUTHORIZATION_FAILED}
    for table in TABLE_NAMES[:3]:
        rows, gaps = seen(cluster(refused=refused), table)
        assert gaps == [("CLUSTER_AUTHORIZATION_FAILED",)]
        assert {row["group_id"] for row in rows} >= {"classic"}


def test_clients_are_hidden_in_members() -> None:
    names = Pseudonyms(b"k" * 32, "k1")
    rows, _ = seen(cluster(), "group_assignments", names)
    (row,) = (row for row in rows if row["group_id"] == "classic")
    hidden = names.pseudonym("client_id", "app")
    assert row["client_id"] == hidden
    assert row["client_address"] == names.pseudonym("client_address", "10.0.0.1")
    assert row["member_id"] == hidden + JAVA_MEMBER.removeprefix("app")
