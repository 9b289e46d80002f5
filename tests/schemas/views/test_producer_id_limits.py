"""Whom a plan limits for the producer ids it takes, how, and what forbids it."""

from datetime import timedelta

from quotaflow.pipelines.feedback.planning import plan_inputs

from ... import case_tables
from ...rows import Row, quota
from .limit_rows import (
    ADDRESS,
    HISTORY_S,
    NO_IDS,
    Outcomes,
    assert_steps,
    cluster,
    heap,
    history,
    ids,
    loop,
    quiet,
    rates,
    seen,
    settings,
)
from .view_tables import Picked, Tables, assert_outcomes, assert_shown, picked, signals, view
from .wait_rows import SLOW


def earlier(rows: list[Row], by_s: float) -> list[Row]:
    """The same rows, so many seconds before."""
    times = ("event_time", "first_seen", "last_seen")
    return [row | {name: row[name] - timedelta(seconds=by_s) for name in times} for row in rows]


OFFENDERS: Outcomes = {
    ("address", None): {
        "a loop of new producers": cluster(),
        "an innocent of the same user at another address": cluster(
            seen(0, client_address="10.0.0.6", client_pattern="calm", **NO_IDS)
        ),
        "another principal, longer ago than the history": cluster(
            quiet(-HISTORY_S - 3_000, client_address=ADDRESS)
        ),
        "another principal, and conf lists the address": cluster(
            quiet(-86_400, client_address=ADDRESS),
            settings=settings(producer_ids__limited_addresses=f"10.0.0.4\n{ADDRESS}"),
        ),
        "a history that conf makes short": cluster(
            address_clients=[*history(3_600, 60), *loop()],
            settings=settings(plan__address_history_s=60),
        ),
        "a small heap": cluster(
            active_producers=heap(500),
            settings=settings(producer_ids__broker_heap_bytes=256 * 2**20),
        ),
    },
    ("address", "other_principals"): {
        "another principal at the address": cluster(quiet(-86_400, client_address=ADDRESS))
    },
    ("address", "clients_hidden"): {
        "addresses are pseudonyms": cluster(
            settings=settings(privacy__hides__client_address="true")
        ),
        "client ids are pseudonyms": cluster(settings=settings(privacy__hides__client_id="true")),
        "an old pseudonym": cluster(
            address_clients=[*history(), *loop(client_address="hmac.k1.0123456789abcdef01234567")]
        ),
    },
    ("address", "requests_sampled"): {
        "ingest samples requests": cluster(quiet(-60, max_weight=10))
    },
    ("address", "address_history_short"): {
        "six days of history": cluster(address_clients=[*history(6 * 86_400), *loop()]),
        "a gap of half a day": cluster(
            address_clients=[*history(43_200), *earlier(history(HISTORY_S), 86_400), *loop()]
        ),
    },
    ("address", "offence_too_short"): {
        "one bad minute": cluster(address_clients=[*history(), seen(540)])
    },
    ("address", "no_harm"): {
        "no harm: the heap fits": cluster(active_producers=heap(5)),
        "no harm: a large heap": cluster(
            settings=settings(producer_ids__broker_heap_bytes=32 * 2**30)
        ),
        "no harm of this source: others took nearly all ids": cluster(
            *(quiet(n, producer_ids=9_000) for n in range(0, 600, 60))
        ),
    },
    ("client_quota", "usage_unknown"): {
        "the loop keeps its connection": cluster(
            address_clients=[*history(), *loop(allocating_connections=1)]
        )
    },
    ("client_quota", "program_elsewhere"): {
        "a kept connection, and the program runs elsewhere": cluster(
            seen(0, client_address="10.0.0.6", **NO_IDS),
            address_clients=[*history(), *loop(allocating_connections=1)],
        )
    },
    ("client_quota", "many_client_ids"): {
        "a kept connection of many client ids": cluster(
            address_clients=[*history(), *loop(allocating_connections=1, client_pattern="loop-*")]
        )
    },
    ("producer_ids_rate", None): {
        "a cluster that takes producer_ids_rate": cluster(
            quiet(-60, client_address=ADDRESS, replica_id=2),
            settings=settings(probe__producer_ids_rate="accepted"),
        )
    },
    ("producer_ids_rate", "no_harm"): {
        "the same without harm": cluster(
            active_producers=heap(5), settings=settings(probe__producer_ids_rate="accepted")
        )
    },
}
INNOCENT = {
    (): {
        "nothing but a deploy": cluster(
            producer_id_uses=[
                row
                for n in range(30)
                for row in ids(1, client_address=f"10.0.2.{n}", client_id=f"pod-{n}")
            ]
        ),
        "no burst explains it": cluster(producer_id_uses=[]),
        "a cause that is not known": cluster(
            producer_id_uses=[row for row in ids(12, 0.05) if row["producer_id"] is not None]
        ),
        "no second over the quota": cluster(producer_id_rates=rates(is_violating=False)),
        "another principal's loop": cluster(
            producer_id_rates=rates("User:dora"), producer_id_uses=ids(principal="User:dora")
        ),
    }
}


def test_each_offender_has_its_limit_or_what_forbids_it() -> None:
    assert_steps(OFFENDERS)


def test_nobody_else_is_an_offender() -> None:
    assert_outcomes(INNOCENT, "producer_id_offenders", "principal")


LIMITED_BEFORE = [quota(0, "connection_creation_rate", 5.0, ip=ADDRESS, user=None)]
PLANNED: dict[str, tuple[Tables, Picked]] = case_tables.table(
    __file__,
    "PLANNED",
    cluster,
    settings,
    loop,
    ADDRESS=ADDRESS,
    LIMITED_BEFORE=LIMITED_BEFORE,
    SLOW=SLOW,
)
_SHOWN = ("entity_type", "entity_name", "entity_client_id", "config_key", "config_value")


def test_a_limit_is_planned_with_its_harm() -> None:
    unblocked = "desired_configs WHERE blocked_reason IS NULL"
    actual = assert_shown(PLANNED, unblocked, *_SHOWN, "prior_value", "reason_code")
    (row,) = actual["an address"]
    numbers = {"forecast_bytes": 457_920_000, "bound_bytes": 67_108_864, "producer_ids": 1_200}
    assert signals(row).items() >= (numbers | {"brokers": 3}).items()
    of_offender = ("producer_per_batch", "User:erin as loop at 10.0.0.5")
    assert picked([row], "reason_detail", "subject") == [of_offender]
    worded = plan_inputs.worded(row)
    assert "keep one producer, and close it when the program ends" in worded.reason
    assert "(3 in all at 3 brokers)" in worded.reason


def test_what_is_blocked_asks_for_no_removal() -> None:
    kept = cluster(address_clients=[*history(), *loop(allocating_connections=1)])
    limits = view("desired_configs WHERE config_key = 'request_percentage'", kept)
    assert picked(limits, *_SHOWN, "blocked_reason") == [
        ("user", "erin", "loop", "request_percentage", None, "usage_unknown")
    ]
