"""Requests of clients that fail."""

from ...rows import Row, at, times
from .view_tables import Picked, Tables, assert_shown


def failed(code: int, requests: int = 2, **others: object) -> Row:
    return times(5, "PRODUCE", each={}, **others) | {
        "errors": [{"error_code": code, "requests": requests}]
    }


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
    "of normal work": ({"request_times": [failed(27), failed(79)]}, []),
}


def test_a_row_is_a_program_at_a_broker_that_got_an_error() -> None:
    columns = ("broker_id", "program", "error_code", "error_name", "requests")
    shown = assert_shown(CASES, "client_failures ORDER BY broker_id", *columns)
    assert shown["by name and broker"][0]["minute"] == at(0)
