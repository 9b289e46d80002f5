"""Cordoned log dirs (KIP-1066): which brokers take no replica, and what is not advised then."""

from ...cases import cases
from ...rows import Row, choice, config, row
from .view_tables import Picked, assert_shown, view


def set_on(broker_id: int, key: str, value: str | None, second: float = 0) -> Row:
    """A config of a broker as a snapshot saw it."""
    named = {"entity_type": "broker", "entity_name": str(broker_id)}
    return config(second, key, value, **named)


def configs(cordoned: str | None, log_dirs: str | None = "/a,/b", second: float = 0) -> list[Row]:
    return [
        set_on(1, "log.dirs", log_dirs),
        set_on(1, "log.dir", "/data/kafka-logs"),
        set_on(1, "cordoned.log.dirs", cordoned, second),
    ]


CORDONED: dict[str, tuple[list[Row], Picked]] = {
    "none": (configs(""), []),
    "a broker before 4.3": (configs(None), []),
    "one of two": (configs("/b"), [(2, 1, True)]),
    "both, as the file writes them": (configs(" /b/ , /a"), [(2, 2, False)]),
    "all by a star": (configs("*"), [(2, 2, False)]),
    "the one that log.dir has": (configs("/data/kafka-logs", None), [(1, 1, False)]),
    "a log dir of no broker": (configs("/c"), [(2, 0, True)]),
    "not any more": ([*configs("*"), set_on(1, "cordoned.log.dirs", "", 60)], []),
    "its log dirs are in no snapshot": (configs("/a", None)[2:], [(None, 0, True)]),
    "a star, and its log dirs are in no snapshot": (configs("*")[2:], [(None, None, False)]),
}


def test_which_brokers_take_no_replica() -> None:
    cases = {case: ({"configs": rows}, expected) for case, (rows, expected) in CORDONED.items()}
    names = ("log_dirs", "cordoned_log_dirs", "takes_replicas")
    assert_shown(cases, "cordoned_brokers", *names)


BROKERS = [row("brokers", 0, {}, broker_id=n, rack=f"az-{rack}") for n, rack in enumerate("bab", 1)]
FAR = choice(0, 9, recommended_reason="no_replica_in_rack", avoidable_bytes=0)


@cases(
    ("cordoned", "expected"),
    ("none", [], ["place_replica"]),
    ("one of the rack", [(1, "*")], ["place_replica"]),
    ("all of the rack", [(1, "*"), (3, "*")], []),
    ("one of another rack", [(1, "*"), (2, "*")], ["place_replica"]),
)
def test_no_replica_is_to_be_placed_where_all_is_cordoned(
    cordoned: list[tuple[int, str]], expected: list[str]
) -> None:
    set_there = [set_on(broker_id, "cordoned.log.dirs", value) for broker_id, value in cordoned]
    content = {"preferred_replicas": [FAR], "brokers": BROKERS, "configs": set_there}
    assert [row["advice"] for row in view("replica_advice", content)] == expected
