"""Requests of clients that fail."""

from ...rows import Row, at, row, times
from .view_tables import Picked, Tables, assert_shown, picked, view


def failed(code: int, requests: int = 2, resources: tuple[str, ...] = (), **others: object) -> Row:
    return times(5, "PRODUCE", each={}, **others) | {
        "errors": [{"error_code": code, "requests": requests}],
        "error_resources": [{"error_code": code, "resource": name} for name in resources] or None,
    }


def refused(code: int, offset: int, entity: str = "payments", **others: object) -> Row:
    given = {"api": "INCREMENTAL_ALTER_CONFIGS", "principal": "User:admin", "client_id": "cli"}
    given |= {"entity_type": "topic", "entity_name": entity, "broker_id": 1} | others
    return row("config_alterations", 5, given, error_code=code, source_offset=offset)


CASES: dict[str, tuple[Tables, Picked]] = {
    "by name and broker": (
        {"request_times": [failed(29), failed(29, 3, broker_id=2)]},
        [
            (1, "orders", 29, "TOPIC_AUTHORIZATION_FAILED", 2),
            (2, "orders", 29, "TOPIC_AUTHORIZATION_FAILED", 3),
        ],
    ),
    "clients of one program": (
        {"request_times": [failed(29, n, client_id=f"job-{n}{n}{n}") for n in (1, 2, 3)]},
        [(1, "job-*", 29, "TOPIC_AUTHORIZATION_FAILED", 6)],
    ),
    "a code that nobody knows": (
        {"request_times": [failed(9_999)]},
        [(1, "orders", 9_999, None, 2)],
    ),
    "a change that the controller refused": (
        {"config_alterations": [refused(40, 1), refused(0, 1, "orders"), refused(42, 2)]},
        [(1, "cli", 40, "INVALID_CONFIG", 1), (1, "cli", 42, "INVALID_REQUEST", 1)],
    ),
    "one error for two entries of a request": (
        {"config_alterations": [refused(40, 1), refused(40, 1, "orders")]},
        [(1, "cli", 40, "INVALID_CONFIG", 1)],
    ),
    "a topic that is there already": ({"config_alterations": [refused(36, 1)]}, []),
    "an answer that was lost": (
        {"config_alterations": [refused(0, 1) | {"error_code": None}]},
        [],
    ),
    "of a broker that seeks the controller": (
        {"request_times": [failed(41) | {"api": "BROKER_REGISTRATION"}]},
        [],
    ),
    "of a client that sends what only a broker may": (
        {"request_times": [failed(31) | {"api": "BROKER_REGISTRATION"}]},
        [(1, "orders", 31, "CLUSTER_AUTHORIZATION_FAILED", 2)],
    ),
    "of a client that seeks the controller": (
        {"request_times": [failed(41) | {"api": "CREATE_TOPICS"}]},
        [(1, "orders", 41, "NOT_CONTROLLER", 2)],
    ),
    "of normal work": ({"request_times": [failed(27), failed(79)]}, []),
}


def test_a_row_is_a_program_at_a_broker_that_got_an_error() -> None:
    columns = ("broker_id", "program", "error_code", "error_name", "requests")
    shown = assert_shown(CASES, "client_failures ORDER BY broker_id, error_code", *columns)
    assert shown["by name and broker"][0]["minute"] == at(0)


def test_an_error_has_the_topics_and_groups_that_got_it() -> None:
    """Of several clients of a program, each once; an id has the name that a snapshot knows."""
    content = {
        "request_times": [
            failed(29, client_id="job-1", resources=("b", "t1")),
            failed(29, client_id="job-2", resources=("b", "a")),
            failed(30, client_id="job-2", resources=("sales",)),
            failed(6),
        ],
        "topics": [row("topics", 0, {}, topic="orders", topic_id="t1")],
        "config_alterations": [refused(40, 1), refused(40, 1, "orders"), refused(40, 2, "orders")],
    }
    shown = view("client_failures ORDER BY program, error_code", content)
    assert picked(shown, "program", "error_code", "requests", "resources") == [
        ("cli", 40, 2, ["orders", "payments"]),
        ("job-*", 29, 4, ["a", "b", "orders"]),
        ("job-*", 30, 2, ["sales"]),
        ("orders", 6, 2, None),
    ]
