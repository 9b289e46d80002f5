"""Whom a plan limits for the producer ids it takes, how, and what forbids it."""

from datetime import timedelta

from quotaflow.pipelines.feedback.planning import plan_inputs

from ...rows import Row, quota
from .limit_rows import (
    ADDRESS,
    HISTORY_S,
    NO_IDS,
    Offender,
    cluster,
    expected,
    heap,
    history,
    ids,
    loop,
    quiet,
    rates,
    seen,
    settings,
    steps,
)
from .view_tables import by_case, picked
from .wait_rows import SLOW


def earlier(rows: list[Row], by_s: float) -> list[Row]:
    """The same rows, so many seconds before."""
    times = ("event_time", "first_seen", "last_seen")
    return [row | {name: row[name] - timedelta(seconds=by_s) for name in times} for row in rows]


OFFENDERS: dict[str, Offender] = {
    "a loop of new producers": (cluster(), "address", None),
    "an innocent of the same user at another address": (
        cluster(seen(0, client_address="10.0.0.6", client_pattern="calm", **NO_IDS)),
        *("address", None),
    ),
    "another principal at the address": (
        cluster(quiet(-86_400, client_address=ADDRESS)),
        *("address", "other_principals"),
    ),
    "another principal, longer ago than the history": (
        cluster(quiet(-HISTORY_S - 3_000, client_address=ADDRESS)),
        *("address", None),
    ),
    "another principal, and conf lists the address": (
        cluster(
            quiet(-86_400, client_address=ADDRESS),
            settings=settings(producer_ids__limited_addresses=f"10.0.0.4\n{ADDRESS}"),
        ),
        *("address", None),
    ),
    "addresses are pseudonyms": (
        cluster(settings=settings(privacy__hides__client_address="true")),
        *("address", "clients_hidden"),
    ),
    "client ids are pseudonyms": (
        cluster(settings=settings(privacy__hides__client_id="true")),
        *("address", "clients_hidden"),
    ),
    "an old pseudonym": (
        cluster(
            address_clients=[*history(), *loop(client_address="hmac.k1.0123456789abcdef01234567")]
        ),
        *("address", "clients_hidden"),
    ),
    "ingest samples requests": (
        cluster(quiet(-60, max_weight=10)),
        *("address", "requests_sampled"),
    ),
    "six days of history": (
        cluster(address_clients=[*history(6 * 86_400), *loop()]),
        *("address", "address_history_short"),
    ),
    "a gap of half a day": (
        cluster(address_clients=[*history(43_200), *earlier(history(HISTORY_S), 86_400), *loop()]),
        *("address", "address_history_short"),
    ),
    "a history that conf makes short": (
        cluster(
            address_clients=[*history(3_600, 60), *loop()],
            settings=settings(plan__address_history_s=60),
        ),
        *("address", None),
    ),
    "one bad minute": (
        cluster(address_clients=[*history(), seen(540)]),
        *("address", "offence_too_short"),
    ),
    "no harm: the heap fits": (cluster(active_producers=heap(5)), *("address", "no_harm")),
    "no harm: a large heap": (
        cluster(settings=settings(producer_ids__broker_heap_bytes=32 * 2**30)),
        *("address", "no_harm"),
    ),
    "a small heap": (
        cluster(
            active_producers=heap(500),
            settings=settings(producer_ids__broker_heap_bytes=256 * 2**20),
        ),
        *("address", None),
    ),
    "no harm of this source: others took nearly all ids": (
        cluster(*(quiet(n, producer_ids=9_000) for n in range(0, 600, 60))),
        *("address", "no_harm"),
    ),
    "the loop keeps its connection": (
        cluster(address_clients=[*history(), *loop(allocating_connections=1)]),
        *("client_quota", "usage_unknown"),
    ),
    "a kept connection, and the program runs elsewhere": (
        cluster(
            seen(0, client_address="10.0.0.6", **NO_IDS),
            address_clients=[*history(), *loop(allocating_connections=1)],
        ),
        *("client_quota", "program_elsewhere"),
    ),
    "a kept connection of many client ids": (
        cluster(
            address_clients=[*history(), *loop(allocating_connections=1, client_pattern="loop-*")]
        ),
        *("client_quota", "many_client_ids"),
    ),
    "a cluster that takes producer_ids_rate": (
        cluster(
            quiet(-60, client_address=ADDRESS, replica_id=2),
            settings=settings(probe__producer_ids_rate="accepted"),
        ),
        *("producer_ids_rate", None),
    ),
    "the same without harm": (
        cluster(active_producers=heap(5), settings=settings(probe__producer_ids_rate="accepted")),
        *("producer_ids_rate", "no_harm"),
    ),
}
INNOCENT = {
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


def test_each_offender_has_its_limit_or_what_forbids_it() -> None:
    assert steps(OFFENDERS) == expected(OFFENDERS)


def test_nobody_else_is_an_offender() -> None:
    actual = by_case(INNOCENT, "SELECT * FROM producer_id_offenders")
    assert actual == {case: [] for case in INNOCENT}


LIMITED_BEFORE = [quota(0, "connection_creation_rate", 5.0, ip=ADDRESS, user=None)]
PLANNED = {
    "an address": (
        cluster(),
        [("ip", ADDRESS, None, "connection_creation_rate", "1", None, "producer_ids_fill_heap")],
    ),
    "an address with a limit of somebody": (
        cluster(client_quotas=LIMITED_BEFORE),
        [("ip", ADDRESS, None, "connection_creation_rate", "1", "5", "producer_ids_fill_heap")],
    ),
    "clients wait": (
        SLOW,
        [("ip", ADDRESS, None, "connection_creation_rate", "1", None, "producer_ids_slow_clients")],
    ),
    "a user, where the cluster takes it": (
        cluster(
            *loop(client_address="10.0.0.6"), settings=settings(probe__producer_ids_rate="accepted")
        ),
        [("user", "erin", None, "producer_ids_rate", "1.0", None, "producer_ids_fill_heap")],
    ),
}
_SHOWN = ("entity_type", "entity_name", "entity_client_id", "config_key", "config_value")


def test_a_limit_is_planned_with_its_harm() -> None:
    cases = {case: content for case, (content, _) in PLANNED.items()}
    sql = "SELECT * FROM desired_configs WHERE blocked_reason IS NULL"
    actual = by_case(cases, sql)
    names = (*_SHOWN, "prior_value", "reason_code")
    assert {case: picked(rows, *names) for case, rows in actual.items()} == {
        case: rows for case, (_, rows) in PLANNED.items()
    }
    (row,) = actual["an address"]
    evidence = ("observed", "bound", "unit", "matching", "total", "reason_detail", "subject")
    assert picked([row], *evidence) == [
        (
            *(457_920_000.0, 67_108_864.0, "bytes", 1_200, 3),
            *("producer_per_batch", "User:erin as loop at 10.0.0.5"),
        )
    ]
    worded = plan_inputs.worded(row)
    assert "keep one producer and close it at the end" in worded.reason
    assert "3 per second at 3 brokers" in worded.reason


def test_what_is_blocked_asks_for_no_removal() -> None:
    kept = cluster(address_clients=[*history(), *loop(allocating_connections=1)])
    actual = by_case({"kept": kept}, "SELECT * FROM desired_configs")["kept"]
    limits = [row for row in actual if row["config_key"] == "request_percentage"]
    assert picked(limits, *_SHOWN, "blocked_reason") == [
        ("user", "erin", "loop", "request_percentage", None, "usage_unknown")
    ]
