"""Which programs have fallen silent."""

from collections.abc import Iterable

from ...rows import Row, at, times
from .view_tables import Picked, Tables, assert_shown, picked, view

DAY_MINUTES = 24 * 60


def active(minutes: Iterable[int], client_id: str = "orders") -> list[Row]:
    return [times(60 * minute, "FETCH", each={}, client_id=client_id) for minute in minutes]


def beside(*rows: Row, until: int = DAY_MINUTES) -> Tables:
    """Requests beside those of a client that is there to the end."""
    return {"request_times": [*rows, *active([until], client_id="other")]}


CASES: dict[str, tuple[Tables, Picked]] = {
    "it sent each minute, and sends no more": (
        beside(*active(range(100)), until=111),
        [(60.0, 60.0, 720.0, True)],
    ),
    "for as long as it may": (beside(*active(range(100)), until=109), [(60.0, 60.0, 600.0, False)]),
    "it sends still": (beside(*active(range(100)), until=99), [(60.0, 60.0, 0.0, False)]),
    "a batch job that comes each hour": (
        beside(*active(range(0, DAY_MINUTES, 60)), until=DAY_MINUTES + 30),
        [(3_600.0, 3_600.0, 5_400.0, False)],
    ),
    "one that runs for ten minutes each hour": (
        beside(*active(n + m for n in range(0, DAY_MINUTES, 60) for m in range(10))),
        [(60.0, 3_060.0, 3_060.0, False)],
    ),
    "and that has not come for three hours": (
        beside(*active(n + m for n in range(0, DAY_MINUTES - 120, 60) for m in range(10))),
        [(60.0, 3_060.0, 10_260.0, True)],
    ),
    "one that ran once": (beside(*active([0])), [(None, None, 86_400.0, None)]),
    "instances of one program": (
        beside(*active(range(50), "job-1"), *active(range(50, 100), "job-2"), until=100),
        [(60.0, 60.0, 60.0, False)],
    ),
    "none within the week": (beside(*active(range(9)), until=8 * DAY_MINUTES), []),
}


def test_a_program_is_silent_that_stays_away_longer_than_it_ever_did() -> None:
    columns = ("usual_gap_s", "longest_gap_s", "silent_s", "is_silent")
    assert_shown(CASES, "program_activity WHERE program <> 'other'", *columns)


def test_a_program_has_its_times_and_the_requests_of_a_day() -> None:
    each = active((0, 1, 2 * DAY_MINUTES, 2 * DAY_MINUTES + 1))
    ((first, last, requests, minutes),) = picked(
        view("program_activity", {"request_times": each}),
        *("first_seen", "last_seen", "requests_of_day", "active_minutes"),
    )
    last_two = sum(row["request_count"] for row in each[2:])
    assert (first, last) == (at(0), at(60 * (2 * DAY_MINUTES + 1)))
    assert (requests, minutes) == (last_two, 4)
