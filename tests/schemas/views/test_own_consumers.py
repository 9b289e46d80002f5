"""Consumers of brokers and of this pipeline: shown as such, and nobody's to-do, by their login."""

import pytest

from ...rows import Row, choice, fetched, setting
from .view_tables import by_case

OWN, SPARK = "User:quotaflow", "consumer-spark-kafka-source-1-executor-2"
SMALL_ANSWERS = {"wait_timeout_fetches": 0}


def ingest(principal: str, client_id: str = SPARK) -> dict[str, list[Row]]:
    """An ingest in another rack than its leader, with many small answers."""
    client = {"principal": principal, "client_id": client_id}
    return {
        "settings": [setting(f"excluded.{OWN}", "own")],
        "preferred_replicas": [choice(0, 9, **client, topic="log")],
        "fetch_sizes": [fetched(0, 600, 60_000, **client, **SMALL_ANSWERS)],
    }


CASES: dict[str, tuple[dict[str, list[Row]], bool]] = {
    "our login": (ingest(OWN), True),
    "our login, by any client id": (ingest(OWN, "orders"), True),
    "a client that only names itself like Spark's": (ingest("User:mallory"), False),
    "a client that only names itself like this pipeline's": (
        ingest("User:mallory", "quotaflow-leases"),
        False,
    ),
    "a login that all clients share": (
        ingest("User:ANONYMOUS") | {"settings": [setting("excluded.User:ANONYMOUS", "own")]},
        False,
    ),
}
_SQL = """
    SELECT 'racks' AS name, cluster_id, CAST(is_internal AS INT) AS n FROM client_racks
    UNION ALL
    SELECT 'fetch_advice', cluster_id, count(*) FROM fetch_advice GROUP BY cluster_id
    UNION ALL
    SELECT 'replica_advice', cluster_id, count(*) FROM replica_advice GROUP BY cluster_id
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, dict[str, int]]:
    rows = by_case({case: tables for case, (tables, _) in CASES.items()}, _SQL)
    return {case: {row["name"]: row["n"] for row in of_case} for case, of_case in rows.items()}


@pytest.mark.parametrize("case", CASES)
def test_no_advice_is_about_our_own_consumers(shown: dict[str, dict[str, int]], case: str) -> None:
    if CASES[case][1]:
        assert shown[case] == {"racks": 1}
    else:
        # Its client could name its rack, or the leader could move.
        assert shown[case] == {"racks": 0, "fetch_advice": 1, "replica_advice": 2}


def test_limits_of_followers_are_advised_though_brokers_are_internal() -> None:
    full = fetched(0, 60, 60 * 2**20, replica_id=2, max_bytes_fetches=60, principal="User:broker")
    cases = {"a full follower": {"fetch_sizes": [full]}}
    rows = by_case(cases, "SELECT cluster_id, advice FROM fetch_advice")["a full follower"]
    assert [row["advice"] for row in rows] == ["raise_replica_fetch_response_max_bytes"]
