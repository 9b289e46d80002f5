"""Whose producer ids are blamed where clients of a broker wait."""

from .limit_rows import OFFENDER
from .view_tables import assert_outcomes, picked
from .wait_rows import SLOW, taken, waits

DORA = {"principal": "User:dora", "client_address": "10.0.9.9"}
BLAMED = {
    ("latency",): {
        "it takes ids at the broker while its clients wait": SLOW,
        "nearly all ids are of others, at another broker": waits(
            (7, 8, 9), *taken(700), *taken(90_000, broker_id=1, **DORA)
        ),
    },
    (None,): {
        "nobody waits": waits((), *taken(700)),
        "its ids are of another broker": waits((7, 8, 9), *taken(700, broker_id=1)),
        "its ids are of other minutes": waits((7, 8, 9), *taken(700, range(7))),
        "clients waited before it began": waits((1, 2, 3), *taken(700, range(4, 10)), began=4),
        "they waited before, and its ids did no harm yet": waits((1, 2, 3), *taken(700), began=4),
        "one id per second costs no time": waits((7, 8, 9), *taken(61)),
        "two slow minutes, of which one shows": waits((8, 9), *taken(700)),
        "nearly all ids there are of others": waits((7, 8, 9), *taken(700), *taken(7_000, **DORA)),
    },
}


def test_who_is_blamed_for_clients_that_wait() -> None:
    actual = assert_outcomes(
        BLAMED, f"producer_id_offenders WHERE principal = '{OFFENDER}'", "harm"
    )
    (row,) = actual["it takes ids at the broker while its clients wait"]
    assert picked([row], "broker_id", "produce_p99_ms", "ids_per_s") == [(2, 5_000.0, 2.0)]
