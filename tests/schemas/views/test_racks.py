"""What crosses racks by the hour, and which clients read in the rack they were configured with."""

from typing import Any

from ... import case_tables
from ...cases import cases
from ...rows import NAN, Row, choice, crossed, gauge, setting
from .view_tables import picked, view

GIB = 2**30


def test_an_hour_of_two_racks_has_its_bytes_and_what_they_cost() -> None:
    content = {
        "rack_traffic": [
            crossed(0, GIB),
            crossed(60, 2 * GIB),
            crossed(3_600, GIB),
            crossed(0, GIB, flow="replicated"),
            crossed(0, 5, client_rack=None, cross_rack_bytes=None),
        ],
        "preferred_replicas": [choice(0, GIB), choice(60, GIB, avoidable_bytes=0)],
        "settings": [setting("prices.cross_rack_per_gib", 0.5), setting("prices.currency", "EUR")],
    }
    actual = view("rack_traffic_by_hour ORDER BY hour, flow, bytes", content)
    names = ("flow", "bytes", "cross_rack_bytes", "avoidable_bytes", "cross_rack_cost")
    assert picked(actual, *names, "avoidable_cost", "currency") == [
        ("consumed", 5, None, None, None, None, "EUR"),
        ("consumed", 3 * GIB, 3 * GIB, GIB, 1.5, 0.5, "EUR"),
        ("replicated", GIB, GIB, None, 0.5, None, "EUR"),
        ("consumed", GIB, GIB, None, 0.5, None, "EUR"),
    ]


REPORTED = "consumer.fetch.manager.preferred.read.replica"


def reported(second: float, replica: float, **others: Any) -> Row:
    return gauge(second, REPORTED, replica, topic="orders", partition=0, **others)


@cases(
    ("read", "pushed", "expected"),
    *case_tables.rows(
        __file__,
        "where_a_consumer_says_it_reads_against_where_it_was_answered",
        choice,
        reported,
        NAN=NAN,
    ),
)
def test_where_a_consumer_says_it_reads_against_where_it_was_answered(
    read: list[Row], pushed: list[Row], expected: tuple[Any, ...]
) -> None:
    content = {"preferred_replicas": read, "client_metrics": pushed}
    names = ("reported_replica", "read_replica", "verdict")
    assert picked(view("reported_read_replicas", content), *names) == [expected]
    minutes = {"same": (1, 0), "other": (1, 1)}.get(str(expected[-1]), (0, 0))
    counted = view("client_racks", content)
    assert picked(counted, "reported_minutes", "differing_minutes") == [minutes]


NEAR = {"broker_id": 2, "broker_rack": "az-b", "cross_rack_bytes": 0}
INFERRED = {"is_rack_inferred": True}
PUSHED = gauge(0, "consumer.x", 1.0, client_rack="az-b")


@cases(
    ("read", "pushed", "expected"),
    ("near", [choice(0, 9, **NEAR)], [], (None, "az-b", None, "az-b", "followed")),
    (
        "known, and half of it read across",
        [choice(0, 9), choice(0, 8, **NEAR)],
        [PUSHED],
        ("az-b", "az-b", None, "az-a", "mixed"),
    ),
    (
        "told, and read across",
        [choice(0, 90), choice(0, 10, **NEAR)],
        [],
        (None, "az-b", None, "az-a", "elsewhere"),
    ),
    (
        "configured, and not told",
        [choice(0, 9, **INFERRED)],
        [PUSHED],
        ("az-b", None, "az-b", "az-a", "ignored"),
    ),
    (
        "no rack, nor a client id",
        [choice(0, 9, **INFERRED, client_id=None)],
        [],
        (None, None, "az-b", "az-a", "no_rack"),
    ),
    (
        "a broker whose rack nobody knows",
        [choice(0, 9, broker_rack=None, cross_rack_bytes=None)],
        [],
        (None, "az-b", None, None, "unknown"),
    ),
)
def test_configured_against_effective_racks(
    read: list[Row], pushed: list[Row], expected: tuple[Any, ...]
) -> None:
    content = {"preferred_replicas": read, "client_metrics": pushed}
    names = ("configured_rack", "declared_rack", "inferred_rack", "read_rack", "verdict")
    assert picked(view("client_racks", content), *names) == [expected]


@cases(
    ("crossed", "at_home", "unknown", "expected"),
    ("a tenth", 1, 9, 0, (0.1, "followed")),
    ("more than a tenth", 11, 89, 0, (0.11, "mixed")),
    ("half", 1, 1, 0, (0.5, "mixed")),
    ("less than nine tenths", 89, 11, 0, (0.89, "mixed")),
    ("nine tenths", 9, 1, 0, (0.9, "elsewhere")),
    ("of the bytes of known racks", 1, 3, 6, (0.25, "unknown")),
    ("no racks are known", 0, 0, 6, (None, "unknown")),
    ("it read nothing", 0, 0, 0, (None, "unknown")),
)
def test_the_share_of_bytes_that_crossed_racks(
    crossed: int, at_home: int, unknown: int, expected: tuple[Any, ...]
) -> None:
    reads = [
        choice(0, crossed),
        choice(0, at_home, **NEAR),
        choice(0, unknown, broker_rack=None, cross_rack_bytes=None),
    ]
    content = {"preferred_replicas": [each for each in reads if each["bytes"]] or reads[-1:]}
    names = ("cross_rack_share", "verdict")
    assert picked(view("client_racks", content), *names) == [expected]


def test_bytes_of_unknown_racks_stand_beside_those_that_crossed() -> None:
    unknown = choice(0, 8, broker_rack=None, cross_rack_bytes=None)
    content = {"preferred_replicas": [choice(0, 9), unknown]}
    names = ("bytes", "cross_rack_bytes", "unknown_rack_bytes", "verdict")
    ((total, crossed, unknown_bytes, verdict),) = picked(view("client_racks", content), *names)
    assert (total, verdict) == (crossed + unknown_bytes, "unknown")
    assert min(crossed, unknown_bytes) > 0
