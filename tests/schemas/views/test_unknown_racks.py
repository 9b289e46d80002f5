"""Racks that clients name and no broker has: what may be meant, and what is advised."""

from typing import Any

from ...cases import cases
from ...rows import Row, at, choice, moved
from .view_tables import Tables, picked, view

IDS = ["use2-az1", "use2-az2", "use2-az3"]
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
NOBODY_THERE: Row = {"recommended_reason": "no_replica_in_rack", "avoidable_bytes": 0}


def brokers(*racks: str | None) -> list[Row]:
    row = {"cluster_id": "c1", "event_time": at(-60), "is_removed": False}
    return [row | {"broker_id": n, "rack": rack} for n, rack in enumerate(racks, 1)]


def read(rack: str, size: int = 8) -> Row:
    """What a consumer in a rack that no broker has read: nothing of it is known to cross racks."""
    return choice(0, size, client_rack=rack, cross_rack_bytes=None, **NOBODY_THERE)


def named(rack: str) -> list[Row]:
    return [moved(0, 8, direction="consumed", client_rack=rack, cross_rack_bytes=None)]


@cases(
    ("racks", "rack", "nearest"),
    ("a zone id for a zone's name", ZONES, "use1-az1", ", ".join(ZONES)),
    ("a zone's name for a zone id", IDS, "us-east-2c", ", ".join(IDS)),
    ("capitals", ZONES, "US-EAST-1A", "us-east-1a"),
    ("white space", ZONES, " us-east-1a ", "us-east-1a"),
    ("a line's end", ZONES, "us-east-1b\n", "us-east-1b"),
    ("other separators", ZONES, "us_east_1c", "us-east-1c"),
    ("quoted", ZONES, '"us-east-1a"', "us-east-1a"),
    ("the label of a node", ZONES, "topology.kubernetes.io/zone=us-east-1a", "us-east-1a"),
    ("a prefix of the rack", ZONES, "rack-us-east-1b", "us-east-1b"),
    ("its end alone", ZONES, "1c", "us-east-1c"),
    ("the region", ZONES, "us-east-1", ", ".join(ZONES)),
    ("another zone of the region", ZONES, "us-east-1d", ", ".join(ZONES)),
    ("a typing error", ["alpha", "bravo"], "aplha", "alpha"),
    ("a node's name", ZONES, "ip-10-0-3-7.ec2.internal", ", ".join(ZONES)),
    ("no text", ZONES, "   ", ", ".join(ZONES)),
    ("an expression of a template", ZONES, "${RACK}", ", ".join(ZONES)),
    ("one rack alone", ["r1"], "somewhere", "r1"),
    ("other scripts", ["зона-1", "зона-2"], "Берлин", "зона-1, зона-2"),
)
def test_what_may_be_meant(racks: list[str], rack: str, nearest: str) -> None:
    shown = view("unknown_racks", {"traffic": named(rack), "brokers": brokers(*racks)})
    assert picked(shown, "client_rack", "nearest_racks") == [(rack, nearest)]


@cases(
    ("racks", "rack"),
    ("a broker has it", ZONES, "us-east-1a"),
    ("the cluster has no racks", [None, None], "us-east-1a"),
    ("a broker names none, and may be there", ["us-east-1b", None], "us-east-1a"),
    ("no snapshot", [], "us-east-1a"),
)
def test_a_rack_that_may_be_one_is_not_unknown(racks: list[str | None], rack: str) -> None:
    assert view("unknown_racks", {"traffic": named(rack), "brokers": brokers(*racks)}) == []


def content(rack: str, **others: Any) -> Tables:
    tables = {"traffic": named(rack), "preferred_replicas": [read(rack)]}
    return tables | {"brokers": brokers(*IDS)} | others


def test_a_consumer_is_advised_a_rack_of_the_cluster() -> None:
    names = ("advice", "principal", "client_id", "client_rack", "nearest_racks")
    (row,) = view("replica_advice", content("us-east-2c"))
    assert picked([row], *names, "saved_bytes_per_hour", "topic") == [
        ("unknown_rack", "User:alice", "orders", "us-east-2c", ", ".join(IDS), None, None)
    ]
    (racks,) = view("client_racks", content("us-east-2c"))
    assert picked([racks], "verdict", "cross_rack_bytes", "unknown_rack_bytes") == [
        ("unknown_rack", None, 8)
    ]


def test_a_producer_is_advised_a_rack_of_the_cluster() -> None:
    rack = {"client_rack": "USE2-AZ1", "broker_rack": "use2-az2", "rack_source": "address"}
    sent = moved(0, 9) | rack | {"is_rack_inferred": True, "cross_rack_bytes": None}
    tables = {"traffic": [sent], "brokers": brokers(*IDS)}
    (row,) = view("producer_racks", tables)
    assert picked([row], "cross_rack_bytes", "unknown_rack_bytes", "cross_rack_cost") == [
        (None, 9, None)
    ]
    (step,) = view("producer_rack_advice", tables)
    assert picked([step], "advice", "client_rack", "nearest_racks") == [
        ("unknown_rack", "USE2-AZ1", "use2-az1")
    ]
