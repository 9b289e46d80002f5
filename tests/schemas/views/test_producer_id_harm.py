"""Whose producer ids are blamed where clients of a broker wait."""

from .limit_rows import OFFENDER
from .view_tables import by_case, picked
from .wait_rows import SLOW, taken, waits

BLAMED = {
    "it takes ids at the broker while its clients wait": (SLOW, "latency"),
    "nobody waits": (waits((), *taken(700)), None),
    "its ids are of another broker": (waits((7, 8, 9), *taken(700, broker_id=1)), None),
    "its ids are of other minutes": (waits((7, 8, 9), *taken(700, range(7))), None),
    "clients waited before it began": (waits((1, 2, 3), *taken(700, range(4, 10)), began=4), None),
    "they waited before, and its ids did no harm yet": (
        waits((1, 2, 3), *taken(700), began=4),
        None,
    ),
    "one id per second costs no time": (waits((7, 8, 9), *taken(61)), None),
    "two slow minutes, of which one shows": (waits((8, 9), *taken(700)), None),
    "nearly all ids there are of others": (
        waits(
            (7, 8, 9), *taken(700), *taken(7_000, principal="User:dora", client_address="10.0.9.9")
        ),
        None,
    ),
    "nearly all ids are of others, at another broker": (
        waits(
            (7, 8, 9),
            *taken(700),
            *taken(90_000, broker_id=1, principal="User:dora", client_address="10.0.9.9"),
        ),
        "latency",
    ),
}


def test_who_is_blamed_for_clients_that_wait() -> None:
    cases = {case: content for case, (content, _) in BLAMED.items()}
    sql = f"SELECT * FROM producer_id_offenders WHERE principal = '{OFFENDER}'"
    actual = by_case(cases, sql)
    assert {case: picked(rows, "harm") for case, rows in actual.items()} == {
        case: [(harm,)] for case, (_, harm) in BLAMED.items()
    }
    (row,) = actual["it takes ids at the broker while its clients wait"]
    assert picked([row], "broker_id", "produce_p99_ms", "ids_per_s") == [(2, 5_000.0, 2.0)]
