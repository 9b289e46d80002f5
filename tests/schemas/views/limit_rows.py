"""Rows of a cluster with one offender: what each test does not name is the same everywhere."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from ...delta_tables import NOON, recent_time, violation
from ...rows import Row, active, fresh, minute_of, row, setting, use
from .view_tables import Tables, assert_outcomes

ADDRESS, OFFENDER = "10.0.0.5", "User:erin"
NO_IDS: Row = {"producer_ids": 0, "allocating_connections": 0}
HISTORY_S = 7 * 86_400
OFFENCE_S = 600
"""How long an offender has been at it."""


def seen(second: float, **others: Any) -> Row:
    """A minute of an address: the offender took 120 ids on as many connections."""
    minute = minute_of(second)
    times = {"first_seen": minute, "last_seen": minute + timedelta(seconds=59)}
    client = {"client_address": ADDRESS, "principal": OFFENDER, "client_pattern": "loop"}
    counts = {"requests": 500, "producer_ids": 120, "allocating_connections": 120, "max_weight": 1}
    counts |= {"other_connections": 0, "data_requests": 0, "data_bytes": 0}
    return row("address_clients", minute, times | client | counts | others)


def quiet(second: float, **others: Any) -> Row:
    """A minute of another client somewhere else."""
    one: Row = {"principal": "User:dora", "client_address": "10.0.9.9", "client_pattern": "app"}
    return seen(second, **one | NO_IDS | others)


def history(length_s: int = HISTORY_S + 3_600, every_s: int = 3_600) -> list[Row]:
    """What was seen before, so that the history has no gap."""
    return [quiet(-second) for second in range(0, length_s + 1, every_s)]


def loop(principal: str = OFFENDER, **others: Any) -> list[Row]:
    """Ten minutes of the offender at its address, up to the newest minute."""
    return [seen(n, **{"principal": principal} | others) for n in range(0, OFFENCE_S, 60)]


def ids(count: int = 40, apart_s: float = 10.0, second: float = 0.0, **others: Any) -> list[Row]:
    """Producers, each for one batch, over the ten minutes."""
    owner: Row = {"principal": OFFENDER, "client_id": "loop", "client_pattern": "loop"}
    owner |= {"client_address": ADDRESS} | others
    made = []
    for n in range(count):
        made.append(use(second + n * apart_s, 10_000 + n, **owner))
        made.append(use(second + n * apart_s, None, **owner, requests=1, produce_requests=1))
    return made


def rates(principal: str = OFFENDER, **others: Any) -> list[Row]:
    """Seconds over the quota of one id per second."""
    seconds = {"rate_per_s": 2.0, "quota_per_s": 1.0, "throttle_time_ms": 5_000, "new_ids": 2}
    given = {"principal": principal, "is_violating": True} | seconds | others
    return [row("producer_id_rates", n, given, kind="allocation") for n in range(0, 400, 20)]


@cache  # each cluster has one, and no test changes it
def heap(entries: int = 5_000) -> list[Row]:
    """Entries of producer ids that came within 400 s: 5,000 forecast 458 MB."""
    return [active(0, 1), *(active(400, 100 + n) for n in range(entries))]


SETTINGS = {
    "plan.offence_period_s": OFFENCE_S,
    "plan.address_history_s": HISTORY_S,
    "producer_ids.max_heap_share": 0.1,
    "producer_ids.max_heap_bytes": 64 * 1024 * 1024,
    "producer_ids.limited_addresses": "",
    "producer_ids.protected_addresses": "",
    "producer_ids.manage_expiration": "false",
    "privacy.hides.client_address": "false",
    "privacy.hides.client_id": "false",
    "probe.producer_ids_rate": "refused: 42",
    "excluded.User:admin": "plan.excluded_principals",
    "excluded.User:shipper": "ingest.shipper_principals",
    "own_principal": "User:us",
    "excluded.User:us": "own",
}


def settings(**others: Any) -> list[Row]:
    """Conf as a snapshot stored it; __ stands for the dots of a key."""
    changed = {name.replace("__", "."): value for name, value in others.items()}
    return [setting(name, value) for name, value in (SETTINGS | changed).items()]


BROKERS = [
    row("brokers", 0, {}, broker_id=n)
    | {"host": f"10.0.1.{n}", "port": 9092, "is_controller": n == 1}
    for n in (1, 2, 3)
]


def cluster(*more: Row, **tables: list[Row]) -> Tables:
    """A cluster whose offender a plan may limit; `more` are rows of address_clients."""
    content = {
        "address_clients": [*history(), *loop()],
        "producer_id_uses": ids(),
        "producer_id_rates": rates(),
        "active_producers": heap(),
        "settings": settings(),
        "brokers": BROKERS,
    }
    content |= tables
    content["address_clients"] = [*content["address_clients"], *more]
    return content


def offenders(principals: Iterable[str], when: datetime) -> Tables:
    """Loops that a plan limits by producer_ids_rate, as tables have them at that time."""
    second = (when - NOON).total_seconds()
    content: Tables = {"address_clients": [], "producer_id_uses": []}
    for number, principal in enumerate(principals):
        minute = seen(second, principal=principal, client_address=f"10.0.3.{number}")
        content["address_clients"].append(minute | {"last_seen": when})
        content["producer_id_uses"] += [
            row | {"producer_id": None if row["producer_id"] is None else 100 * number + n}
            for n, row in enumerate(ids(12, 0.5, principal=principal, second=second - 6))
        ]
    rates_of = [violation(principal, when) for principal in principals]
    conf = {"plan.offence_period_s": 60, "producer_ids.max_heap_bytes": 1}
    stored = conf | {"probe.producer_ids_rate": "accepted"}
    return content | {
        "producer_id_rates": rates_of,
        "active_producers": [active(0, 1)],
        "settings": [setting(name, value) for name, value in stored.items()],
    }


def offending_now(*users: str) -> Tables:
    """The same half an hour ago, with current facts and a current snapshot: old ones block a plan.

    The least tables of which a plan changes the quotas of these users.
    """
    now = recent_time()
    content = offenders([f"User:{user}" for user in users], now - timedelta(minutes=30))
    return content | {"pipeline_progress": fresh(now)}


Outcomes = dict[tuple[str, str | None], dict[str, Tables]]
"""Clusters with one offender, by the step that stops it and what forbids that."""


def assert_steps(outcomes: Outcomes) -> None:
    """Assert the step of each offender, and what forbids it."""
    assert_outcomes(outcomes, "producer_id_offenders", "step", "blocked_reason")
