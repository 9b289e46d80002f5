"""How busy the handler threads of brokers are."""

from ...rows import Row, at, broker_config, times
from .view_tables import Picked, Tables, assert_shown

FOUR = {"configs": [broker_config("num.io.threads", "4")]}


def minute(local_ms: float, **others: object) -> Row:
    """A minute of 10 requests."""
    return times(0, "PRODUCE", each={"local": local_ms, "request_queue": 3.0}, **others)


HEAVY = {"principal": "User:bob", "client_id": None}
CASES: dict[str, tuple[Tables, Picked]] = {
    "half of the time": (
        FOUR | {"request_times": [minute(12_000.0)]},
        [(0.5, 4, 120_000.0, 3.0, "User:alice", 1.0)],
    ),
    "by whom": (
        FOUR | {"request_times": [minute(3_000.0), minute(9_000.0, **HEAVY)]},
        [(0.5, 4, 120_000.0, 3.0, "User:bob", 0.75)],
    ),
    "nothing to do": (
        FOUR | {"request_times": [minute(0.0)]},
        [(0.0, 4, 0.0, 3.0, "User:alice", None)],
    ),
    "another broker's threads": (
        FOUR | {"request_times": [minute(12_000.0, broker_id=2)]},
        [(None, None, 120_000.0, 3.0, "User:alice", 1.0)],
    ),
    "without a snapshot": (
        {"request_times": [minute(12_000.0)]},
        [(None, None, 120_000.0, 3.0, "User:alice", 1.0)],
    ),
}


def test_a_thread_is_busy_for_the_local_time_of_requests() -> None:
    numbers = ("busy_share", "handler_threads", "local_time_ms", "queue_mean_ms")
    shown = assert_shown(CASES, "handler_threads", *numbers, "busiest_principal", "busiest_share")
    assert shown["by whom"][0]["minute"] == at(0)
