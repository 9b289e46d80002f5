"""Principals that no quota may slow down, and the views that must use that one notion."""

import pytest

from quotaflow.pipelines.feedback.planning.evidence_checks import PROPOSED_BY
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.sql_dialects import tables_in

from ...rows import Row, altered, at, fetched, moved, request, setting
from .view_tables import by_case

USER_ROW = {"entity_type": "user", "entity_name": "x", "principal": "User:alice"}


def super_users(value: str | None, **others: object) -> Row:
    row = {"cluster_id": "c1", "event_time": at(0), "is_removed": False, "entity_type": "broker"}
    row |= {"entity_name": "1", "config_key": "super.users", "config_value": value}
    return row | {"is_sensitive": value is None, "config_source": "STATIC_BROKER_CONFIG"} | others


CASES: dict[str, tuple[dict[str, list[Row]], list[tuple[str, str]]]] = {
    "nobody": ({}, []),
    "by conf": (
        {"settings": [setting("excluded.User:a", "plan.excluded_principals")]},
        [("User:a", "excluded")],
    ),
    "the shipper": (
        {"settings": [setting("excluded.User:s", "ingest.shipper_principals")]},
        [("User:s", "shipper")],
    ),
    "conf did once": (
        {
            "settings": [
                setting("excluded.User:a", "own"),
                setting("excluded.User:a", None, 60, is_removed=True),
            ]
        },
        [],
    ),
    "super users": (
        {"configs": [super_users("User:a; User:CN=b,O=c;")]},
        [("User:CN=b,O=c", "super_user"), ("User:a", "super_user")],
    ),
    "hidden super users": ({"configs": [super_users(None)]}, []),
    "former super users": (
        {"configs": [super_users("User:a"), super_users("User:b", event_time=at(60))]},
        [("User:b", "super_user")],
    ),
    "a follower": ({"fetch_sizes": [fetched(0, 1, 1, replica_id=2)]}, [("User:alice", "broker")]),
    "a client that a broker refused as a follower": (
        {"fetch_sizes": [fetched(0, 1, 0, replica_id=2)]},
        [],
    ),
    "a consumer": ({"fetch_sizes": [fetched(0, 1, 1)]}, []),
    "who altered a quota": (
        {"config_alterations": [altered(0, "producer_byte_rate", "9", **USER_ROW)]},
        [("User:alice", "administrator")],
    ),
    "who was refused": (
        {"config_alterations": [altered(0, "producer_byte_rate", "9", **USER_ROW, error_code=31)]},
        [],
    ),
    "who altered its own topic": (
        {"config_alterations": [altered(0, "retention.ms", "9", principal="User:alice")]},
        [],
    ),
    "the first reason counts": (
        {
            "settings": [setting("excluded.User:alice", "own")],
            "fetch_sizes": [fetched(0, 1, 1, replica_id=2)],
        },
        [("User:alice", "own")],
    ),
}


@pytest.fixture(scope="module")
def actual() -> dict[str, list[Row]]:
    """The protected principals of each case."""
    cases = {case: tables for case, (tables, _) in CASES.items()}
    sql = "SELECT * FROM protected_principals ORDER BY principal"
    return by_case(cases, sql)


@pytest.mark.parametrize("case", CASES)
def test_who_is_protected(actual: dict[str, list[Row]], case: str) -> None:
    principals = [(row["principal"], row["why_code"]) for row in actual[case]]
    assert principals == CASES[case][1]


INTERNAL = {
    "by conf": False,
    "the shipper": True,
    "super users": False,
    "a follower": True,
    "who altered a quota": False,
    "the first reason counts": True,
}


@pytest.mark.parametrize("case", INTERNAL)
def test_logins_of_brokers_and_of_this_pipeline_are_internal(
    actual: dict[str, list[Row]], case: str
) -> None:
    assert {row["is_internal"] for row in actual[case]} == {INTERNAL[case]}


def login(place: str) -> dict[str, list[Row]]:
    """A login that all clients share, of brokers and shippers too."""
    return {
        "settings": [setting("excluded.User:ANONYMOUS", place)],
        "fetch_sizes": [fetched(0, 1, 1, replica_id=2, principal="User:ANONYMOUS")],
        "requests": [request(1, "PRODUCE", principal="User:ANONYMOUS")],
        "traffic": [moved(1, 10, principal="User:ANONYMOUS")],
    }


SHOWN: dict[str, tuple[dict[str, list[Row]], list[tuple[str, bool]]]] = {
    "an ordinary client": (
        {"requests": [request(1, "PRODUCE")], "traffic": [moved(1, 10)]},
        [("User:alice", False)],
    ),
    "a shipper": (
        {
            "settings": [setting("excluded.User:alice", "ingest.shipper_principals")],
            "requests": [request(1, "PRODUCE")],
            "traffic": [moved(1, 10)],
        },
        [("User:alice", True)],
    ),
    "a receiver with the login of brokers": (
        {
            "fetch_sizes": [fetched(0, 1, 1, replica_id=2)],
            "requests": [request(1, "PRODUCE")],
            "traffic": [moved(1, 10)],
        },
        [("User:alice", True)],
    ),
    "all clients without a login": (login("own"), [("User:ANONYMOUS", False)]),
    "an excluded principal": (
        {
            "settings": [setting("excluded.User:alice", "plan.excluded_principals")],
            "requests": [request(1, "PRODUCE")],
            "traffic": [moved(1, 10)],
        },
        [("User:alice", False)],
    ),
}
_SHOWN_IN = """
    SELECT 'top_talkers' AS name, cluster_id, principal, is_internal FROM top_talkers
    UNION ALL
    SELECT 'clients_without_telemetry', cluster_id, principal, false FROM clients_without_telemetry
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, list[Row]]:
    """Where each case shows, with whether it is marked there."""
    cases = {case: tables for case, (tables, _) in SHOWN.items()}
    return by_case(cases, _SHOWN_IN)


@pytest.mark.parametrize("case", SHOWN)
def test_internal_clients_are_marked_as_talkers_and_owe_no_telemetry(
    shown: dict[str, list[Row]], case: str
) -> None:
    expected = SHOWN[case][1]
    of_view = {
        name: [(row["principal"], row["is_internal"]) for row in shown[case] if row["name"] == name]
        for name in ("top_talkers", "clients_without_telemetry")
    }
    assert of_view["top_talkers"] == expected
    assert of_view["clients_without_telemetry"] == [each for each in expected if not each[1]]


OF_NO_PRINCIPAL = {
    *("expiration_proposals", "leftover_proposals"),
    *("replication_proposals", "subscription_proposals"),
}
"""They propose configs of topics, brokers and client-metrics resources: no principal has these."""
ADVICE = ["producer_id_advice", "quota_advice"]


@pytest.mark.parametrize("name", sorted({*PROPOSED_BY.values(), *ADVICE} - OF_NO_PRINCIPAL))
def test_every_proposal_about_principals_leaves_the_protected_ones_out(name: str) -> None:
    answers = {answer.name: answer for answer in ANSWERS}
    left, read = [name], set[str]()
    while left:
        source = left.pop()
        read.add(source)
        if source in answers:
            left += sorted({*answers[source].views, *answers[source].inputs} - read)
        elif source in views.load():
            left += sorted(tables_in(views.load()[source].sql) - read)
    assert "protected_principals" in read
