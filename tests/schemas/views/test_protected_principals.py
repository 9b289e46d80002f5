"""Principals that no quota may slow down, and the views that must use that one notion."""

import pytest

from quotaflow.pipelines.feedback.planning.evidence_checks import PROPOSED_BY
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.sql_dialects import tables_in

from ... import case_tables
from ...rows import Row, altered, at, fetched, moved, request, setting
from .view_tables import Picked, Tables, assert_outcomes, assert_shown, by_case, served

USER_ROW = {"entity_type": "user", "entity_name": "x", "principal": "User:alice"}


def super_users(value: str | None, **others: object) -> Row:
    row = {"cluster_id": "c1", "event_time": at(0), "is_removed": False, "entity_type": "broker"}
    row |= {"entity_name": "1", "config_key": "super.users", "config_value": value}
    return row | {"is_sensitive": value is None, "config_source": "STATIC_BROKER_CONFIG"} | others


IS_BROKER = {"fetch_sizes": [fetched(0, 1, 1, replica_id=2)]}
EXCLUDED = {"settings": [setting("excluded.User:alice", "own")]}
CASES: dict[str, tuple[Tables, Picked]] = {
    **case_tables.table(
        __file__, "CASES", setting, super_users, fetched, altered, IS_BROKER=IS_BROKER
    ),
    "conf did once": (
        {
            "settings": [
                *EXCLUDED["settings"],
                setting("excluded.User:alice", None, 60, is_removed=True),
            ]
        },
        [],
    ),
    "who altered a quota": (
        {"config_alterations": [altered(0, "producer_byte_rate", "9", **USER_ROW)]},
        [("User:alice", "administrator")],
    ),
    "who was refused": (
        {"config_alterations": [altered(0, "producer_byte_rate", "9", **USER_ROW, error_code=31)]},
        [],
    ),
    "the first reason counts": (EXCLUDED | IS_BROKER, [("User:alice", "own")]),
}


def test_who_is_protected() -> None:
    assert_shown(CASES, "protected_principals ORDER BY principal", "principal", "why_code")


INTERNAL = {
    "by conf": False,
    "the shipper": True,
    "super users": False,
    "a follower": True,
    "who altered a quota": False,
    "the first reason counts": True,
}


def test_logins_of_brokers_and_of_this_pipeline_are_internal() -> None:
    protected = by_case(
        {case: CASES[case][0] for case in INTERNAL}, "SELECT * FROM protected_principals"
    )
    actual = {case: {row["is_internal"] for row in rows} for case, rows in protected.items()}
    assert actual == {case: {is_internal} for case, is_internal in INTERNAL.items()}


TRAFFIC = served([request(1, "PRODUCE")]) | {"traffic": [moved(1, 10)]}


def login(place: str) -> Tables:
    """A login that all clients share, of brokers and shippers too."""
    return {
        "settings": [setting("excluded.User:ANONYMOUS", place)],
        "fetch_sizes": [fetched(0, 1, 1, replica_id=2, principal="User:ANONYMOUS")],
        **served([request(1, "PRODUCE", principal="User:ANONYMOUS")]),
        "traffic": [moved(1, 10, principal="User:ANONYMOUS")],
    }


SHOWN: dict[tuple[str, bool], dict[str, Tables]] = {
    ("User:alice", False): {
        "an ordinary client": TRAFFIC,
        "an excluded principal": TRAFFIC
        | {"settings": [setting("excluded.User:alice", "plan.excluded_principals")]},
    },
    ("User:alice", True): {
        "a shipper": TRAFFIC
        | {"settings": [setting("excluded.User:alice", "ingest.shipper_principals")]},
        "a receiver with the login of brokers": TRAFFIC | IS_BROKER,
    },
    ("User:ANONYMOUS", False): {"all clients without a login": login("own")},
}


def test_internal_clients_are_marked_as_talkers_and_owe_no_telemetry() -> None:
    assert_outcomes(SHOWN, "top_talkers", "principal", "is_internal")
    owing = {
        () if is_internal else (principal,): alike
        for (principal, is_internal), alike in SHOWN.items()
    }
    assert_outcomes(owing, "clients_without_telemetry", "principal")


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
