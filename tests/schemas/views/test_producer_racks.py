"""Where producers are, how that is known, and what would keep their bytes there."""

from collections.abc import Iterable
from typing import Any

import pytest

from quotaflow.pipelines import reasons

from ...cases import cases
from ...rows import Row, at, choice, gauge, moved, row, setting
from .view_tables import Picked, Tables, assert_shown, by_case, picked, view

GIB = 2**30
CLAIMED = {"client_rack": "az-b", "is_rack_inferred": True, "rack_source": "client_id"}
BY_ADDRESS: dict[str, str | None] = CLAIMED | {"rack_source": "address"}
CLIENT = ("principal", "client_id")


def sent(size: int, broker_rack: str | None = "az-a", **others: Any) -> Row:
    """A minute of a producer to a leader in a rack."""
    row = {"client_rack": None, "is_rack_inferred": False, "rack_source": None, "topic": "orders"}
    return moved(0, size) | row | {"broker_rack": broker_rack} | others


def pushed(rack: str, second: float = 5) -> Row:
    """A point of the producer's metrics that names its rack (KIP-1123)."""
    row = {name: sent(0)[name] for name in CLIENT}
    return gauge(second, "producer.x", 1.0, client_rack=rack) | row


RACKS: dict[str, tuple[Tables, Picked]] = {
    "nothing says it": ({"traffic": [sent(9)]}, [(None, None, 9, None, 9)]),
    "its address": ({"traffic": [sent(9, **BY_ADDRESS)]}, [("az-b", "address", 9, 9, 0)]),
    "a row of before": (
        {"traffic": [sent(9, **BY_ADDRESS | {"rack_source": None})]},
        [("az-b", "address", 9, 9, 0)],
    ),
    "its client id": ({"traffic": [sent(9, **CLAIMED)]}, [("az-b", "client_id", 9, 9, 0)]),
    "its metrics, and not what its id claims": (
        {"traffic": [sent(9, **CLAIMED)], "client_metrics": [pushed("az-a")]},
        [("az-a", "telemetry", 9, 0, 0)],
    ),
    "two of one name": (
        {"traffic": [sent(9)], "client_metrics": [pushed("az-a"), pushed("az-b")]},
        [(None, None, 9, None, 9)],
    ),
    "a broker without a rack": (
        {"traffic": [sent(9, None, **BY_ADDRESS), sent(5, **BY_ADDRESS)]},
        [("az-b", "address", 14, 5, 9)],
    ),
    "consumed bytes": ({"traffic": [sent(9, direction="consumed", **BY_ADDRESS)]}, []),
}


def test_the_rack_of_a_producer() -> None:
    names = ("client_rack", "rack_source", "bytes", "cross_rack_bytes", "unknown_rack_bytes")
    assert_shown(RACKS, "producer_racks", *names)


def replica(broker_id: int, *, is_leader: bool, **others: Any) -> Row:
    given = {"is_leader": is_leader, "is_in_sync": True, "is_offline": False} | others
    return row("replicas", 0, given, topic="orders", broker_id=broker_id)


BROKERS = [
    row("brokers", 0, {}, broker_id=n, rack=f"az-{rack}") for n, rack in ((1, "a"), (2, "b"))
]
LED_THERE = [replica(1, is_leader=True), replica(2, is_leader=True, partition=1)]
REPLICA_THERE = [replica(1, is_leader=True), replica(2, is_leader=False)]
ADVICE: dict[str, tuple[list[Row], list[Row], list[Row], list[str]]] = {
    "by its address": ([sent(9, **BY_ADDRESS)], LED_THERE, [], ["set_producer_rack"]),
    "by its client id": ([sent(9, **CLAIMED)], LED_THERE, [], ["set_producer_rack"]),
    "its metrics name it": ([sent(9)], LED_THERE, [pushed("az-b")], ["check_producer"]),
    "no leader is there": ([sent(9, **BY_ADDRESS)], REPLICA_THERE, [], ["move_leaders"]),
    "no leader is where its client id claims": ([sent(9, **CLAIMED)], REPLICA_THERE, [], []),
    "the replica there is behind": (
        [sent(9, **BY_ADDRESS)],
        [REPLICA_THERE[0], REPLICA_THERE[1] | {"is_in_sync": False}],
        [],
        [],
    ),
    "no replica is there": ([sent(9, **BY_ADDRESS)], LED_THERE[:1], [], []),
    "a tenth at most": ([sent(1, **BY_ADDRESS), sent(9, "az-b", **BY_ADDRESS)], LED_THERE, [], []),
    "the rack is not known": ([sent(9)], LED_THERE, [], []),
}


def test_what_keeps_produced_bytes_in_their_rack() -> None:
    outcomes: dict[str, tuple[Tables, Picked]] = {}
    for case, (traffic, replicas, metrics, advice) in ADVICE.items():
        tables = {"traffic": traffic, "replicas": replicas, "client_metrics": metrics}
        outcomes[case] = (tables | {"brokers": BROKERS}, [(each,) for each in advice])
    assert_shown(outcomes, "producer_rack_advice", "advice")


@cases(
    ("software", "advice"),
    ("a library without such a partitioner", ["librdkafka"], "choose_partitions"),
    ("Kafka's own for Java", ["apache-kafka-java"], "set_producer_rack"),
    ("it names none", ["unknown"], "set_producer_rack"),
    ("several", ["librdkafka", "apache-kafka-java"], "set_producer_rack"),
)
def test_a_step_is_one_that_the_library_can_take(software: list[str], advice: str) -> None:
    assert advised((each, "4.4.0") for each in software)["advice"] == advice


def advised(libraries: Iterable[tuple[str, str | None]], apart_s: int = 60) -> Row:
    """The step of a producer that these libraries name, each in a minute of its own."""
    client = {name: sent(0)[name] for name in CLIENT} | {"api": "PRODUCE"}
    uses = [
        row("request_times", apart_s * n, client, software=[{"name": name, "version": version}])
        for n, (name, version) in enumerate(libraries)
    ]
    content = {"traffic": [sent(9, **BY_ADDRESS)], "replicas": LED_THERE, "brokers": BROKERS}
    (step,) = view("producer_rack_advice", content | {"request_times": uses})
    return step


@cases(
    ("versions", "rack_awareness", "begin"),
    (
        "old",
        ["4.1.0"],
        "too_old",
        "upgrade User:alice as orders from 4.1.0 to 4.4 or ",
    ),
    (
        "one of two is old",
        ["4.10.0", "4.4.0-x", "4.3.9"],
        "too_old",
        "upgrade User:alice as orders ",
    ),
    (
        "Confluent's old",
        ["8.3.0-ccs"],
        "too_old",
        "upgrade User:alice as orders from 8.3.0-ccs ",
    ),
    ("new", ["4.4.0", "4.10.1"], "rack_aware", "give User:alice as orders client.rack=az-b "),
    ("Confluent's new", ["8.4.0-ce"], "rack_aware", "give User:alice as orders client.rack=az-b "),
    ("not known", ["unknown"], None, "if User:alice as orders is a Java client of 4.4 or later, "),
    ("none", [], None, "if User:alice as orders is a Java client of 4.4 or later, give it "),
)
def test_a_known_version_decides_what_the_step_says(
    versions: list[str], rack_awareness: str | None, begin: str
) -> None:
    step = advised(("apache-kafka-java", version) for version in versions)
    assert step["rack_awareness"] == rack_awareness
    assert reasons.producer_rack_step(step).startswith(begin)


def test_a_client_that_was_upgraded_has_its_new_version() -> None:
    versions = [("apache-kafka-java", version) for version in ("3.9.1", "4.1.0")]
    assert advised(versions, apart_s=3_600)["client_software_version"] == "4.1.0"
    assert advised(versions)["client_software_version"] == "3.9.1"


@cases(
    ("others", "expected"),
    ("it goes on", {"second": 60}, ["set_producer_rack"]),
    ("it changed a minute before", {"second": 60, "broker_rack": "az-b"}, ["set_producer_rack"]),
    ("it changed more than an hour before", {"second": 7_200, "broker_rack": "az-b"}, []),
    (
        "another topic changed",
        {"second": 7_200, "broker_rack": "az-b", "topic": "other", "topic_id": "t2"},
        ["set_producer_rack"],
    ),
)
def test_a_step_that_a_producer_took_is_not_advised(
    others: dict[str, Any], expected: list[str]
) -> None:
    later = sent(9, **BY_ADDRESS) | {name: others[name] for name in [*others][1:]}
    later |= {"event_time": at(others["second"])}
    content = {"traffic": [sent(9, **BY_ADDRESS), later], "replicas": LED_THERE}
    rows = view("producer_rack_advice", content | {"brokers": BROKERS})
    assert [row["advice"] for row in rows] == expected


def test_what_a_step_saves() -> None:
    prices = [setting("prices.cross_rack_per_gib", 0.5), setting("prices.currency", "EUR")]
    content = {"traffic": [sent(GIB, **CLAIMED), sent(GIB, "az-b", **CLAIMED)], "settings": prices}
    content |= {"replicas": LED_THERE, "brokers": BROKERS}
    names = ("rack_source", "leaders", "bytes_per_hour", "saved_bytes_per_hour", "saved_bytes")
    (row,) = view("producer_rack_advice", content)
    assert picked([row], *names, "saved_cost_per_hour", "currency") == [
        ("client_id", 1, 120.0 * GIB, 60.0 * GIB, GIB, 30.0, "EUR")
    ]


@cases(
    ("size", "is_small"),
    ("less than 10 MB an hour", 166_666, True),
    ("as much", 166_667, False),
)
def test_a_step_that_spares_little_is_small(size: int, *, is_small: bool) -> None:
    content = {"traffic": [sent(size, **BY_ADDRESS)], "replicas": LED_THERE, "brokers": BROKERS}
    assert picked(view("producer_rack_advice", content), "is_small") == [(is_small,)]


def test_own_producers_are_nobodys_to_do() -> None:
    content = {"traffic": [sent(9, **BY_ADDRESS)], "replicas": LED_THERE, "brokers": BROKERS}
    content |= {"settings": [setting("excluded.User:alice", "own")]}
    assert view("producer_rack_advice", content) == []


NOBODY_THERE = {"recommended_reason": "no_replica_in_rack", "avoidable_bytes": 0}
NO_SELECTOR = {"expected_reason": "no_selector"}
CLAIMS: dict[str, tuple[Row, list[str], list[str]]] = {
    # The steps by an address, and those by a client id alone.
    "no replica in the rack": (choice(0, 9, **NOBODY_THERE), ["place_replica"], []),
    "no selector": (
        choice(0, 9, **NO_SELECTOR),
        ["move_leader", "set_selector"],
        ["set_client_rack"],
    ),
    "an old client": (
        choice(0, 9, api_version=8),
        ["move_leader", "update_client"],
        ["update_client"],
    ),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_a_rack_that_a_client_id_claims_asks_for_nothing_in_the_cluster(case: str) -> None:
    read, by_address, by_client_id = CLAIMS[case]
    cases = {
        "address": {"preferred_replicas": [read | BY_ADDRESS]},
        "client_id": {"preferred_replicas": [read | CLAIMED]},
    }
    actual = by_case(cases, "SELECT * FROM replica_advice ORDER BY advice")
    assert [row["advice"] for row in actual["address"]] == by_address
    assert [row["advice"] for row in actual["client_id"]] == by_client_id
    assert all(row["rack_source"] == "client_id" for row in actual["client_id"])


def test_a_claimed_rack_of_a_consumer_is_shown_as_such() -> None:
    (row,) = view("client_racks", {"preferred_replicas": [choice(0, 9, **CLAIMED)]})
    assert (row["declared_rack"], row["inferred_rack"], row["claimed_rack"]) == (None, None, "az-b")
