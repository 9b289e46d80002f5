"""Whom a plan limits for the producer ids it takes, how, and what forbids it."""

from datetime import timedelta
from typing import Any

import hypothesis as hyp
import pytest
from hypothesis import strategies as st

from quotaflow.pipelines.feedback import plan_inputs

from .limit_rows import (
    ADDRESS,
    HISTORY_S,
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
from .view_rows import Row, active, at, config, quota, replicated, request
from .view_tables import by_case, picked

_OTHER = {"producer_ids": 0, "allocating_connections": 0}


def earlier(rows: list[Row], by_s: float) -> list[Row]:
    """The same rows, so many seconds before."""
    times = ("event_time", "first_seen", "last_seen")
    return [row | {name: row[name] - timedelta(seconds=by_s) for name in times} for row in rows]


OFFENDERS = {
    "a loop of new producers": (cluster(), "address", None),
    "an innocent of the same user at another address": (
        cluster(seen(0, client_address="10.0.0.6", client_pattern="calm", **_OTHER)),
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
    "another program of the user": (
        cluster(*(seen(n, client_pattern="calm", **_OTHER) for n in (-86_400, 0))),
        *("address", "other_programs"),
    ),
    "another program, and conf lists the address": (
        cluster(
            *(seen(n, client_pattern="calm", **_OTHER) for n in (-86_400, 0)),
            settings=settings(producer_ids__limited_addresses=ADDRESS),
        ),
        *("address", None),
    ),
    "names of the loop that live for a minute each": (
        cluster(
            *(
                seen(n, client_pattern=f"name {n}", producer_ids=1, last_seen=at(n + 60))
                for n in range(540)
            )
        ),
        *("address", None),
    ),
    "a loop of two names": (
        cluster(address_clients=[*history(), *loop(), *loop(client_pattern="second")]),
        *("address", None),
    ),
    "a broker fetches from the address": (
        cluster(quiet(0, client_address=ADDRESS, is_follower=True)),
        *("address", "protected_address"),
    ),
    "the address of a broker's listener": (
        cluster(
            address_clients=[*history(), *loop(client_address="10.0.1.2")],
            producer_id_uses=ids(client_address="10.0.1.2"),
        ),
        *("address", "protected_address"),
    ),
    "a shipper's address, though conf lists it": (
        cluster(
            quiet(-60, client_address=ADDRESS, principal="User:shipper"),
            settings=settings(producer_ids__limited_addresses=ADDRESS),
        ),
        *("address", "protected_address"),
    ),
    "quotaflow's own address": (
        cluster(quiet(-60, client_address=ADDRESS, principal="User:us")),
        *("address", "protected_address"),
    ),
    "an address that conf protects": (
        cluster(settings=settings(producer_ids__protected_addresses=ADDRESS)),
        *("address", "protected_address"),
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
    "no harm: the heap fits": (
        cluster(active_producers=heap(5)),
        *("address", "no_harm"),
    ),
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
            seen(0, client_address="10.0.0.6", **_OTHER),
            address_clients=[*history(), *loop(allocating_connections=1)],
        ),
        *("client_quota", "program_elsewhere"),
    ),
    "a kept connection of many client ids": (
        cluster(
            address_clients=[
                *history(),
                *loop(allocating_connections=1, client_pattern="loop-*"),
            ]
        ),
        *("client_quota", "many_client_ids"),
    ),
    "a cluster that takes producer_ids_rate": (
        cluster(
            quiet(-60, client_address=ADDRESS, is_follower=True),
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
    cases = {case: content for case, (content, *_) in OFFENDERS.items()}
    actual = by_case(cases, "SELECT * FROM producer_id_offenders")
    names = ("step", "blocked_reason")
    assert {case: picked(rows, *names) for case, rows in actual.items()} == {
        case: [tuple(expected)] for case, (_, *expected) in OFFENDERS.items()
    }


def test_nobody_else_is_an_offender() -> None:
    actual = by_case(INNOCENT, "SELECT * FROM producer_id_offenders")
    assert actual == {case: [] for case in INNOCENT}


def slow(second: float, waited_ms: float, **others: Any) -> list[Row]:
    """A minute of PRODUCE requests to broker 2, and of replication beside it."""
    served = {"broker_id": 2, "total_time_ms": waited_ms, "principal": "User:dora"}
    return [request(second + n, "PRODUCE", **served | others) for n in range(30)]


SLOW = cluster(
    active_producers=heap(5),
    requests=[row for n in range(10) for row in slow(60 * n, 5_000.0 if n > 6 else 10.0)],
    replication_traffic=[replicated(540, 1, 2)],
)
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
            *loop(client_address="10.0.0.6"),
            settings=settings(probe__producer_ids_rate="accepted"),
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


def _expiring(*more: Row, pauses: bool = True, **settings_of: object) -> dict[str, list[Row]]:
    """With `pauses`, snapshots show two writes of one id."""
    again = [active(400, 1)] if pauses else []
    stored = [config(0, *pair, entity_type="broker", entity_name="1") for pair in EXPIRES]
    return cluster(
        address_clients=[],
        active_producers=[*heap(2_000), *again, *more],
        configs=stored,
        settings=settings(**settings_of),
    )


EXPIRES = (("producer.id.expiration.ms", "86400000"), ("transaction.max.timeout.ms", "900000"))
_MANAGED = {"producer_ids__manage_expiration": "true"}
EXPIRATIONS = {
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
            *(active(n, 7, wrote_s=wrote) for n, wrote in ((10, -40_000), (390, 300))),
            **_MANAGED,
        ),
        [],
    ),
}


def test_ids_expire_earlier_only_where_nobody_needs_them() -> None:
    cases = {case: content for case, (content, _) in EXPIRATIONS.items()}
    actual = by_case(cases, "SELECT * FROM desired_configs")
    assert {case: picked(r, "config_value", "blocked_reason") for case, r in actual.items()} == {
        case: expected for case, (_, expected) in EXPIRATIONS.items()
    }


NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(
    ["quotaflow-shipper", "calm", "hmac.k1.0123456789abcdef01234567", "x at 10.0.0.6", "*", "loop"]
)
CHOSEN = st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=12, max_size=12)
"""What the loop writes about itself: client ids (their patterns), software, and its version."""


@pytest.mark.faults
@hyp.settings(deadline=None, max_examples=2, phases=[hyp.Phase.explicit, hyp.Phase.generate])
@hyp.given(CHOSEN)
def test_what_a_client_writes_moves_nobody(chosen: list[tuple[str, str, str]]) -> None:
    """Under any names the offender is the one that is limited, and nobody else."""
    innocent = [
        *(seen(n, client_address="10.0.0.6", client_pattern="calm", **_OTHER) for n in (-9e4, 0)),
        *(seen(n, client_address="10.0.0.7", principal="User:dora", **_OTHER) for n in (-9e4, 0)),
    ]
    cases = {}
    for case, (first, software, version) in enumerate(chosen):
        # One name for all, one for every producer, or two that take turns.
        others = [first, f"{first}{case}", software]
        given = [
            row
            | {"client_id": name, "client_pattern": name}
            | {"client_software_name": software, "client_software_version": version}
            for n, row in enumerate(ids(200, 0.5))
            for name in [others[n % 3 if case % 3 else 0] + ("x" * n if case % 3 == 1 else "")]
        ]
        minutes = [
            row | {"client_pattern": name, "producer_ids": 70, "allocating_connections": 70}
            for row in loop()
            for name in sorted({first, f"{first}{case}", software})
        ]
        cases[f"c{case}"] = cluster(
            *innocent,
            address_clients=[*history(), *minutes],
            producer_id_uses=given,
        )
    actual = by_case(cases, "SELECT * FROM desired_configs WHERE entity_type <> 'broker'")
    limited = {case: picked(rows, "entity_name", "blocked_reason") for case, rows in actual.items()}
    assert limited == {case: [(ADDRESS, None)] for case in cases}
