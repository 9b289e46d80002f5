"""The command throttle-advice: what a move needs of brokers, from the tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ... import rows
from ...cases import cases
from ...command_line import Command, Printed, in_options
from ...rows import Row, at, choice, crossed, row
from ...schemas.views.view_tables import make_tables

MB = 1_000_000
SEEN_S = -600
AT = {"topic": "bulk", "partition": 0}
Advise = Callable[..., Printed]


def replica(broker_id: int, **others: Any) -> Row:
    is_first = dict.fromkeys(("is_leader", "is_preferred"), broker_id == 1)
    given = {"broker_id": broker_id, "is_in_sync": True, "is_offline": False} | is_first
    return row("replicas", SEEN_S, AT | given | others)


def size(broker_id: int, mega: int, **others: Any) -> Row:
    given = {"broker_id": broker_id, "log_dir": "/d", "size_bytes": mega * MB, "is_future": False}
    return row("replica_sizes", SEEN_S, AT | given | others)


def replicated(minute: int, mega_per_s: float, follower_id: int | None, **others: Any) -> Row:
    given = AT | {"bytes": round(mega_per_s * MB * 60), "fetches": 1} | others
    return rows.replicated(60 * minute, 1, follower_id, **given)


def config_of(broker_id: str, key: str, value: str) -> Row:
    return rows.config(SEEN_S, key, value, entity_type="broker", entity_name=broker_id)


def flowing(minute: int, mega_per_s: float, flow: str, broker_id: int) -> Row:
    return crossed(60 * minute, round(mega_per_s * MB * 60), flow=flow, broker_id=broker_id)


CONTENT = {
    "topics": [row("topics", SEEN_S, {"topic": "bulk"})],
    "replicas": [replica(1), replica(2)],
    "replica_sizes": [
        size(1, 500, event_time=at(-900)),
        size(1, 600),
        size(2, 599),
        size(1, 7, log_dir="/new", is_future=True),
    ],
    "replication_traffic": [
        replicated(-60, 9, None),
        replicated(0, 1, None),
        replicated(1, 2, None),
        replicated(1, 2, 2),
        replicated(1, 5, 2, topic_id="t9", topic=None, leader_throttled_bytes=4 * MB * 60),
    ],
    "rack_traffic": [
        flowing(-60, 80, "consumed", 1),
        flowing(0, 30, "consumed", 1),
        flowing(1, 37, "consumed", 1),
        flowing(1, 90, "replicated", 1),
        flowing(1, 20, "produced", 3),
    ],
    "preferred_replicas": [choice(60, 60 * MB, topic="bulk", topic_id="t1")],
}
CAPACITY = ("--set", "replication.capacity_bytes_per_s=100000000")


@pytest.fixture
def advise(warehouse: Warehouse, tmp_path: Path, table_command: Command) -> Advise:
    """Runs the command on a move of bulk-0 over tables with these rows."""

    def run(
        content: dict[str, list[Row]],
        replicas: list[int],
        *arguments: str,
        topic: str = "bulk",
        code: int = 0,
    ) -> Printed:
        make_tables(warehouse, content)
        file = tmp_path / "move it.json"
        partition = AT | {"topic": topic, "replicas": replicas}
        file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        return table_command("throttle-advice", str(file), *arguments, code=code)

    return run


def test_each_side_is_told_with_what_is_left_of_it(advise: Advise) -> None:
    printed = advise(CONTENT, [1, 3], "--json", *CAPACITY)
    assert printed.rows == [
        {
            "broker_id": 1,
            "side": "leader",
            "size_bytes": 600 * MB,
            "least_bytes_per_s": 4 * MB,
            "other_bytes_per_s": 40 * MB,
            "most_bytes_per_s": 54 * MB,
            "reason": "headroom",
            "capacity": "conf",
            "carried_at_most_bytes_per_s": 80 * MB,
        },
        {
            "broker_id": 3,
            "side": "follower",
            "size_bytes": 600 * MB,
            "least_bytes_per_s": 2 * MB,
            "other_bytes_per_s": 22 * MB,
            "most_bytes_per_s": round(70.2 * MB),
            "reason": "headroom",
            "capacity": "conf",
            "carried_at_most_bytes_per_s": 20 * MB,
        },
    ]
    err = printed.err
    assert "above 4.0 MB/s; clients do not feel it up to 54.0 MB/s" in err
    assert "takes about 12 s" in err
    assert "kafka-reassign-partitions.sh --bootstrap-server 127.0.0.1:9092 --execute" in err
    assert "move it.json' --throttle 54000000" in err
    assert "bulk: leader.replication.throttled.replicas=0:1,0:2\n" in err
    assert "bulk: follower.replication.throttled.replicas=0:3\n" in err


@pytest.mark.parametrize(
    ("size_bytes", "is_warned"),
    [(10_485_760, False), (594_000_000, True), (593_000_000, False)],
)
def test_answers_too_large_for_the_throttle_are_a_warning_before_the_move(
    advise: Advise, size_bytes: int, is_warned: bool
) -> None:
    configs = [config_of("1", "replica.fetch.response.max.bytes", str(size_bytes))]
    err = advise(CONTENT | {"configs": configs}, [1, 3], *CAPACITY).err
    assert ("Replication will stutter" in err) == is_warned


@pytest.mark.parametrize(
    ("broker_id", "value", "is_warned"),
    [("3", "*", True), ("3", "", False), ("2", "*", False)],
    ids=["it gets the replica", "not cordoned", "it has the replica already"],
)
def test_a_move_to_a_cordoned_broker_is_a_warning(
    advise: Advise, broker_id: str, value: str, *, is_warned: bool
) -> None:
    configs = [config_of(broker_id, "cordoned.log.dirs", value)]
    err = advise(CONTENT | {"configs": configs}, [1, 2, 3], *CAPACITY).err
    assert ("log dirs of broker 3 are cordoned" in err) == is_warned


def test_without_conf_nothing_follows_from_what_a_broker_carried(advise: Advise) -> None:
    capacity = in_options("replication.brokers.3=100000000")
    printed = advise(CONTENT, [1, 2, 3], "--json", *capacity)
    leader, follower = printed.rows
    assert (leader["capacity"], follower["capacity"]) == ("unknown", "conf")
    assert (leader["most_bytes_per_s"], leader["reason"]) == (None, "capacity_unknown")
    assert leader["carried_at_most_bytes_per_s"] == 80 * MB
    err = printed.err
    assert "It ends at any rate above 4.0 MB/s." in err
    assert "is not known, because conf has no capacity of brokers 1: set" in err
    assert "Replication stutters with rates up to" in err, "the sizing rule needs no capacity"
    assert "No rate fits" not in err
    assert "--throttle" not in err
    assert "bulk: leader.replication.throttled.replicas=0:1,0:2\n" in err


def test_a_side_without_room_is_named_beside_one_of_unknown_capacity(advise: Advise) -> None:
    busy = {"rack_traffic": [flowing(1, 98.5, "produced", 3)]}
    err = advise(CONTENT | busy, [1, 2, 3], "--set", "replication.brokers.3=100000000").err
    assert "No rate fits: at follower 3 less is left" in err


def test_where_no_rate_fits_it_says_where_not(advise: Advise) -> None:
    busy = {"rack_traffic": [flowing(1, 98.5, "consumed", 1)]}
    err = advise(CONTENT | busy, [3], *CAPACITY).err
    assert "No rate fits: at leader 1 less is left than is written" in err


def test_another_order_copies_nothing(advise: Advise) -> None:
    printed = advise(CONTENT, [2, 1], "--json", *CAPACITY)
    assert printed.out == ""
    assert "Nothing is to be copied" in printed.err


@cases(
    ("content", "arguments", "expected"),
    ("no traffic", {"replication_traffic": []}, (), "the tables have no traffic yet"),
    ("another cluster", {}, ("--set", "kafka.cluster_id=x"), "no traffic of cluster x yet"),
    (
        "two clusters",
        {"replication_traffic": [replicated(0, 1, 2, cluster_id=c) for c in ("c1", "c2")]},
        (),
        "have clusters c1, c2: name one with --set kafka.cluster_id=ID",
    ),
    ("no snapshot", {"replicas": []}, (), "bulk-0 is in no snapshot"),
    ("no leader", {"replicas": [replica(1, is_leader=False)]}, (), "bulk-0 had no leader"),
    ("no size", {"replica_sizes": [size(2, 3)]}, (), "size of bulk-0 at its leader 1"),
    ("two formats", {}, ("--json", "--csv"), "exclude each other"),
    ("a wrong conf", {}, ("--set", "replication.share=2"), "replication.share = 2"),
)
def test_what_is_not_known_is_one_error(
    advise: Advise, content: dict[str, list[Row]], arguments: tuple[str, ...], expected: str
) -> None:
    out, err = advise(CONTENT | content, [3], *arguments, code=2)
    assert (out, len(err.splitlines())) == ("", 1)
    assert expected in err


def test_a_hostile_topic_stays_text(advise: Advise) -> None:
    err = advise(CONTENT, [3], topic="'; DROP TABLE x; --", code=2).err
    assert "'; DROP TABLE x; ---0 is in no snapshot" in err
