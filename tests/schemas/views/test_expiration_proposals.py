"""When producer ids expire earlier, and for whom they must not."""

from ...rows import Row, active, broker_config
from .limit_rows import cluster, heap, settings
from .view_tables import Picked, Tables, assert_shown, signals, view


def _expiring(*more: Row, pauses: bool = True, **settings_of: object) -> Tables:
    """With `pauses`, snapshots show two writes of one id."""
    again = [active(400, 1)] if pauses else []
    stored = [broker_config(*pair) for pair in EXPIRES]
    return cluster(
        address_clients=[],
        active_producers=[*heap(2_000), *again, *more],
        configs=stored,
        settings=settings(**settings_of),
    )


EXPIRES = (("producer.id.expiration.ms", "86400000"), ("transaction.max.timeout.ms", "900000"))
_MANAGED = {"producer_ids__manage_expiration": "true"}
EXPIRATIONS: dict[str, tuple[Tables, Picked]] = {
    "conf does not let plans": (_expiring(), [("31655124", "expiration_not_managed")]),
    "what fits": (_expiring(**_MANAGED), [("31655124", None)]),
    "not under six hours": (
        _expiring(**_MANAGED, producer_ids__max_heap_bytes=2**20),
        [("21600000", None)],
    ),
    "no pause is known": (_expiring(pauses=False, **_MANAGED), []),
    "nor under three times a pause": (
        _expiring(
            *(active(n, 7, wrote_s=wrote) for n, wrote in ((10, -12_000), (390, 300))),
            **_MANAGED,
            producer_ids__max_heap_bytes=2**20,
        ),
        [("36900000", None)],
    ),
    "a pause for which no shorter one is safe": (
        _expiring(
            *(active(n, 7, wrote_s=wrote) for n, wrote in ((10, -40_000), (390, 300))), **_MANAGED
        ),
        [],
    ),
}


def test_an_expiration_is_judged_by_the_heap_that_ids_will_take() -> None:
    (row,) = view("desired_configs", EXPIRATIONS["what fits"][0])
    evidence = signals(row)
    assert row["offence"] == evidence["forecast_bytes"] > (evidence["bound_bytes"] or 0)
    assert (row["least_value"], row["quota_in_force"]) == (21_600_000.0, 86_400_000.0)


def test_ids_expire_earlier_only_where_nobody_needs_them() -> None:
    assert_shown(EXPIRATIONS, "desired_configs", "config_value", "blocked_reason")
