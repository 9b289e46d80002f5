"""Consumers of brokers and of this pipeline: shown as such, and nobody's to-do, by their login."""

from ...rows import choice, fetched, setting
from .view_tables import Tables, assert_outcomes, by_case, picked, view

OWN, SPARK = "User:quotaflow", "consumer-spark-kafka-source-1-executor-2"
SMALL_ANSWERS = {"wait_timeout_fetches": 0}


def ingest(principal: str, client_id: str = SPARK) -> Tables:
    """An ingest in another rack than its leader, with many small answers."""
    client = {"principal": principal, "client_id": client_id}
    return {
        "settings": [setting(f"excluded.{OWN}", "own")],
        "preferred_replicas": [choice(0, 9, **client, topic="log")],
        "fetch_sizes": [fetched(0, 600, 60_000, **client, **SMALL_ANSWERS)],
    }


SHARED = ingest("User:ANONYMOUS") | {"settings": [setting("excluded.User:ANONYMOUS", "own")]}
IS_OWN: dict[bool, dict[str, Tables]] = {
    True: {"our login": ingest(OWN), "our login, by any client id": ingest(OWN, "orders")},
    False: {
        "a client that only names itself like Spark's": ingest("User:mallory"),
        "a client that only names itself like this pipeline's": ingest(
            "User:mallory", "quotaflow-leases"
        ),
        "a login that all clients share": SHARED,
    },
}


def test_no_advice_is_about_our_own_consumers() -> None:
    assert_outcomes(
        {(is_own,): alike for is_own, alike in IS_OWN.items()}, "client_racks", "is_internal"
    )
    # Another's client could name its rack, or the leader could move.
    for name, steps in (("fetch_advice", 1), ("replica_advice", 2)):
        advice = by_case(IS_OWN[True] | IS_OWN[False], f"SELECT * FROM {name}")
        assert {case: len(rows) for case, rows in advice.items()} == {
            case: 0 if is_own else steps for is_own, alike in IS_OWN.items() for case in alike
        }


def test_limits_of_followers_are_advised_though_brokers_are_internal() -> None:
    full = fetched(0, 60, 60 * 2**20, replica_id=2, max_bytes_fetches=60, principal="User:broker")
    advice = view("fetch_advice", {"fetch_sizes": [full]})
    assert picked(advice, "advice") == [("raise_replica_fetch_response_max_bytes",)]
