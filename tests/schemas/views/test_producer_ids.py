"""Whose producer ids are, what caused a burst of them, and what is advised (KIP-936)."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from quotaflow.pipelines.results.declared import result_of

from ... import case_tables
from ...cases import cases, grouped
from ...rows import Row, active, at, broker_config, counted, request, row, use
from ...rule_rows import compute
from .view_tables import Tables, assert_outcomes, assert_shown, picked, view

DAY_S = 86_400
ALICE, BOB = {"principal": "User:alice"}, {"principal": "User:bob"}


def uses(*lives: Iterable[Row]) -> Tables:
    return {"producer_id_uses": [row for life in lives for row in life]}


def lives(
    count: int,
    apart_s: float = 1.0,
    produce_requests: int = 1,
    client_id: str = "app",
    *,
    address: str = "10.0.0.1",
    transactional_id: str | None = None,
    used_s: float = 0.0,
    first_id: int = 0,
) -> list[Row]:
    """Producers of one program one after another; * in a name stands for their number."""
    made = []
    for n in range(count):
        number, second = first_id + n, n * apart_s
        owner = {"client_id": client_id.replace("*", str(number)), "client_address": address}
        owner["client_pattern"] = client_id
        tx = transactional_id and transactional_id.replace("*", str(number))
        made.append(
            use(second, number, transactional_id=tx, last_seen=at(second + used_s), **owner)
        )
        if produce_requests:
            work = {"requests": produce_requests, "produce_requests": produce_requests}
            made.append(use(second, None, **owner, **work))
    return made


def fleet(hosts: int, each: int, apart_s: float, **others: object) -> list[Row]:
    """The same program on many hosts, at once."""
    return [
        row
        for host in range(hosts)
        for row in lives(
            *(each, apart_s),
            client_id=f"orders-{host}-*",
            address=f"10.0.1.{host}",
            first_id=1_000 * host,
            **others,  # type: ignore[arg-type]
        )
    ]


CAUSES = {
    "producer_per_batch": {
        "a producer for every batch": lives(20, 0.2),
        "Java numbers its producers": lives(40, 0.2, 2, "producer-*"),
        "a probe that sends one record and goes": lives(20, 10.0, 1),
    },
    "restart_loop": {
        "dies before it writes": lives(12, 0.5, 0),
        "works for a while, then dies": lives(12, 20.0, 500),
    },
    "transactional_id_churn": {
        "new transactional ids per checkpoint": lives(
            30, 1.0, 0, "producer-sink-*", transactional_id="sink-0-*"
        ),
        "on many task managers": fleet(6, 20, 1.0, transactional_id="sink-*"),
    },
    "deploy_burst": {
        "a deploy on thirty hosts": fleet(30, 1, 0.0),
        "each host starts a dozen transactional producers at once": fleet(
            6, 12, 0.1, transactional_id="tx-*", used_s=60.0
        ),
        "producers begun when first needed": lives(12, 2.5, 600, "orders-*"),
        "transactional ones too, which go on": lives(
            12, 2.5, 600, "tx-*", transactional_id="t-*", used_s=100.0
        ),
    },
    "producer_churn": {
        "a client id for each, on one host": lives(3_000, 0.1, 4, "*"),
        "names that have no number, and much work in between": [
            row | {"client_id": name, "client_pattern": name}
            for n, row in enumerate(lives(300, 0.5, 40))
            for name in [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}"]
        ],
    },
    "unknown": {
        "more than a deploy brings to one host": (
            fleet(30, 1, 0.0) + lives(150, 0.2, 9, first_id=900_000)
        ),
        "a deploy of six minutes": fleet(12, 40, 9.0, produce_requests=9),
        "ids faster than processes restart, unused": lives(20, 0.05, 0),
        "neither a batch each nor a life's work": lives(20, 1.0, 10),
        "a dozen slow producers on a host": lives(12, 2.5, 2, "slow-*"),
    },
}
NO_BURSTS = {
    "nine ids": lives(9),
    "fifty, each half a minute after the last": lives(50, 31.0),
    "one transactional id begun fifty times: the same producer id": [
        row | {"producer_id": 7} for row in lives(50, produce_requests=0)
    ],
    "ids that were named and not given": [
        row | {"allocations": 0} for row in lives(50, produce_requests=0)
    ],
    "fifty principals": [row | {"principal": f"User:u{i}"} for i, row in enumerate(lives(50))],
}


def test_a_burst_has_a_cause() -> None:
    accused = {"transactional_id_churn", "producer_per_batch", "producer_churn", "restart_loop"}
    shown = {
        case: (uses(made), [(cause, sum(row["allocations"] for row in made), cause in accused)])
        for case, made, cause in grouped(CAUSES)
    } | {case: (uses(made), []) for case, made in NO_BURSTS.items()}
    assert_shown(shown, "producer_id_bursts", "cause", "ids", "is_accused")


def exhausted(
    count: int, last_epoch: int = 32_766, *, allocations: int = 0, first_id: int = 0
) -> list[Row]:
    """Transactional producers, each with an id, and a second later with the next one."""
    made = []
    for n in range(count):
        owner = {"client_id": "payments", "transactional_id": f"pay-{first_id + n}"}
        old, new = first_id + 2 * n, first_id + 2 * n + 1
        owner |= {"client_pattern": "payments", "allocations": 0}
        made.append(use(n - 600, old, producer_epoch=last_epoch, last_seen=at(n), **owner))
        given = {"producer_epoch": 0, "allocations": allocations}
        made.append(use(n + 1, new, last_seen=at(90), **owner | given))
    return made


EPOCHS = {
    ("epoch_exhaustion", 12, 12, False): {
        "END_TXN gives the next": uses(exhausted(12)),
        "INIT_PRODUCER_ID does": uses(exhausted(12, allocations=1)),
    },
    ("restart_loop", 12, 0, True): {
        "the old ids have epochs left": uses(exhausted(12, 12, allocations=1))
    },
    ("restart_loop", 16, 12, True): {
        "a quarter has": uses(exhausted(12), exhausted(4, 12, allocations=1, first_id=900))
    },
}


WORDLESS = [
    "".join("bcdfghjklmnprstvz"[(n * k + k) % 17] for k in (1, 3, 5, 7, 11, 13, 2, 6))
    for n in range(1, 17)
]
"""Random names without a figure: no rule can distinguish them from words."""


def named_once(prefix: str, produce_requests: int, apart_s: float = 10.0) -> list[Row]:
    """A producer after another, each under a name that never comes again."""
    made = []
    for n, tail in enumerate(WORDLESS):
        name, second = f"{prefix}{tail}", n * apart_s
        owner = {"client_id": name, "client_pattern": name, "client_address": "10.0.0.7"}
        transactional_id = None if produce_requests else name
        made.append(use(second, 1_000 + n, transactional_id=transactional_id, **owner))
        if produce_requests:
            work = {"requests": produce_requests, "produce_requests": produce_requests}
            made.append(use(second, None, **owner, **work))
    return made


@cases(
    ("life", "cause", "source"),
    ("new transactional ids", named_once("pay-", 0), "transactional_id_churn", "pay-* at 10.0.0.7"),
    ("without a common part", named_once("", 0), "transactional_id_churn", "* at 10.0.0.7"),
    ("that work for a while", named_once("pay.", 500, 1.0), "deploy_burst", "pay.* at 10.0.0.7"),
)
def test_names_that_never_come_again_are_judged_together(
    life: list[Row], cause: str, source: str
) -> None:
    (burst,) = view("producer_id_bursts", uses(life))
    assert picked([burst], "cause", "source", "sources") == [(cause, source, 1)]


def test_a_uuid_in_a_transactional_id_is_one_program() -> None:
    """Sixty new ids of one host, each for a transactional.id with a UUID of its own."""
    made = []
    for n in range(60):
        tx = f"pay-{UUID(int=n * 7919**9, version=4)}"
        name = f"producer-{tx}"
        answer = request(
            10.0 * n, "INIT_PRODUCER_ID", producer_id=n, client_id=name, transactional_id=tx
        )
        made.append(answer | {"client_address": "10.0.0.7", "principal": "User:alice"})
    stored = compute(result_of("producer_id_uses"), requests=made)
    (burst,) = view("producer_id_bursts", {"producer_id_uses": stored})
    assert picked([burst], "cause", "is_accused", "source") == [
        ("transactional_id_churn", True, "producer-pay-* at 10.0.0.7")
    ]


def test_epochs_that_are_used_up() -> None:
    columns = ("cause", "ids", "exhausted_ids", "is_accused")
    assert_outcomes(EPOCHS, "producer_id_bursts", *columns)


def test_an_id_that_replaces_one_whose_epochs_are_used_up() -> None:
    idempotent = [use(n, 90 + n, producer_epoch=32_767 * (1 - n)) for n in (0, 1)]
    names = ("producer_id", "replaced_id", "is_epoch_exhausted")
    assert picked(
        view(
            "producer_ids WHERE producer_id IN (0, 1, 90, 91) ORDER BY producer_id",
            uses(exhausted(1), exhausted(1, 7, first_id=10), idempotent),
        ),
        *names,
    ) == [(0, None, False), (1, 0, True), (90, None, None), (91, None, None)]


def test_bursts_of_a_principal_are_told_apart() -> None:
    late = [
        row
        | {"producer_id": row["producer_id"] + 500}
        | {name: row[name] + timedelta(hours=1) for name in ("first_seen", "last_seen")}
        for row in lives(12, 0.1, 0)
    ]
    actual = view("producer_id_bursts ORDER BY started_at", uses(lives(20, 0.2), late))
    assert picked(actual, "cause", "ids") == [("producer_per_batch", 20), ("unknown", 12)]


@cases(
    ("at_s", "causes"),
    ("more than an hour apart", (0, 4_000), ["deploy_burst"] * 2),
    ("a deploy taken back", (0, 1_800), ["deploy_burst", "unknown"]),
    (
        "a fleet that starts again and again",
        (0, 1_200, 2_400),
        ["deploy_burst", "unknown", "restart_loop"],
    ),
)
def test_a_fleet_that_starts_again_is_no_deploy(at_s: tuple[int, ...], causes: list[str]) -> None:
    starts = [
        row
        | {"client_id": f"{row['client_id']}{second}", "producer_id": second * 99 + n}
        | {name: row[name] + timedelta(seconds=second) for name in ("first_seen", "last_seen")}
        for second in at_s
        for n, row in enumerate(fleet(30, 1, 0.0))
        if row["producer_id"] is not None
    ]
    actual = view("producer_id_bursts ORDER BY started_at", uses(starts))
    assert [row["cause"] for row in actual] == causes


def test_the_source_of_a_burst_is_named_among_others() -> None:
    others = lives(3, 1.0, client_id="calm-*", address="10.0.0.2", first_id=800)
    (burst,) = view("producer_id_bursts", uses(lives(20, 0.2), others))
    names = ("cause", "source", "source_ids", "sources", "median_gap_ms", "requests_per_id")
    assert picked([burst], *names) == [("producer_per_batch", "app at 10.0.0.1", 20, 2, 200.0, 1.0)]
    assert burst["source_clients"] == 1


def test_an_id_belongs_to_whom_it_was_given_to_last() -> None:
    named = {"allocations": 0, "transactional_id": "t"}
    given = [use(0, 1, **ALICE), use(10, 1, **BOB)]
    given += [use(20, 1, **named, principal="User:mallory"), use(0, 2, **named)]
    content = uses(given) | {"active_producers": [active(60, 3)]}
    actual = view("producer_ids ORDER BY producer_id", content)
    assert picked(actual, "producer_id", "principal", "is_owner_known") == [
        (1, "User:bob", True),
        (2, "User:alice", True),
        (3, None, False),
    ]
    assert picked(actual, "first_seen", "last_seen")[0] == (at(0), at(20))
    (first, *_) = view("producer_id_allocations ORDER BY producer_id", content)
    assert (first["principal"], first["last_used_at"]) == ("User:alice", at(20))


EXPIRES = broker_config("producer.id.expiration.ms", "600000")


@cases(
    ("active_rows", "state", "leaders", "partitions"),
    *case_tables.rows(__file__, "the_state_of_an_id_is_that_of_the_last_snapshot", active),
)
def test_the_state_of_an_id_is_that_of_the_last_snapshot(
    active_rows: list[Row], state: str, leaders: list[int] | None, partitions: list[str] | None
) -> None:
    content = uses([use(0, 1)]) | {"active_producers": [*active_rows, active(400, 99)]}
    (actual,) = view("producer_ids WHERE producer_id = 1", content | {"configs": [EXPIRES]})
    assert (actual["state"], actual["expiration_ms"]) == (state, 600_000)
    assert (actual["leaders"], actual["partitions"]) == (leaders, partitions)


def test_a_snapshot_that_found_nothing_new_tells_too() -> None:
    taken = counted(900, 0, "in", 2, job="snapshot", target="active_producers")
    of_others = counted(9_000, 1, "in", 2, job="snapshot", target="topics")
    refused = counted(950, 0, "left_out", 2, job="snapshot", target="active_producers")
    active_rows = [active(100, 7, wrote_s=90), active(400, 7, wrote_s=390)]
    (actual,) = view(
        "producer_ids",
        {"active_producers": active_rows, "pipeline_progress": [taken, of_others, refused]},
    )
    assert (actual["state"], actual["snapshot_time"]) == ("idle", at(900))
    assert (actual["first_seen"], actual["last_seen"]) == (at(100), at(390))


def rate(second: float, rate_per_s: float, **others: object) -> Row:
    given = {"rate_per_s": rate_per_s, "quota_per_s": 1.5, "throttle_time_ms": 0, "new_ids": 1}
    ids = {"kind": "allocation", "is_violating": False}
    return row("producer_id_rates", second, given | ids | others)


def test_the_recommended_rate_holds_the_ordinary_work() -> None:
    ordinary = [rate(-1_000 - n, 0.1 + (n == 0) * 0.4) for n in range(200)]
    burst = [rate(n, 4.0, is_violating=True) for n in range(30)]
    on_another = [rate(-500, 0.05, broker_id=2), rate(-500, 90.0, broker_id=2, kind="activation")]
    content = {"producer_id_rates": ordinary + burst + on_another}
    (advice,) = view("producer_id_advice", content | uses(lives(20, 0.2)))
    names = ("cause", "is_accused", "p99_rate_per_s", "peak_rate_per_s", "recommended_rate_per_s")
    assert picked([advice], *names) == [("producer_per_batch", True, 0.1, 0.5, 0.5)]
    assert picked([advice], "recommended_by", "ids", "source_ids") == [("peak", 20, 20)]
    assert (advice["max_rate_per_s"], advice["other_sources"]) == (4.0, 0)


def test_a_new_id_counts_once_however_often_transactions_name_it() -> None:
    """The KIP's filters are each broker's own, and forget an id that pauses."""
    named = [rate(n, 0.1) for n in range(0, 60, 3)] + [rate(n, 0.1, broker_id=2) for n in (5, 9)]
    (advice,) = view("producer_id_advice", {"producer_id_rates": named} | uses(lives(2, 0.2)))
    assert advice["new_ids"] == 2
    (advice,) = view("producer_id_advice", {"producer_id_rates": named})
    assert advice["new_ids"] == 0


@cases(
    ("quota", "recommended_by"),
    ("a quota of conf", 1.5, "quota_of_conf"),
    ("no quota", None, "no_ordinary_seconds"),
)
def test_who_did_nothing_but_burst_is_recommended_what_conf_says(
    quota: float | None, recommended_by: str
) -> None:
    content = {"producer_id_rates": [rate(n, 4.0, quota_per_s=quota) for n in range(30)]}
    (advice,) = view("producer_id_advice", content | uses(lives(20, 0.2)))
    assert picked([advice], "recommended_rate_per_s", "peak_rate_per_s") == [(quota, None)]
    assert advice["recommended_by"] == recommended_by


def test_who_never_burst_is_accused_of_nothing() -> None:
    content = {"producer_id_rates": [rate(n, 0.2) for n in range(30)]}
    (advice,) = view("producer_id_advice", content)
    names = ("cause", "is_accused", "bursts", "other_sources", "recommended_rate_per_s")
    assert picked([advice], *names) == [(None, False, 0, None, 0.24)]


@cases(
    ("now", "ever", "causes"),
    ("a deploy before", lives(20, 0.2), fleet(30, 1, 0.0), ["producer_per_batch"]),
    ("a deploy now, and a loop before", fleet(30, 1, 0.0), lives(20, 0.2), []),
    ("nothing shows why", [], fleet(30, 1, 0.0), []),
    ("a cause that is not known", lives(20, 0.05, 0), [], []),
)
def test_only_what_caused_a_violation_speaks_of_it(
    now: list[Row], ever: list[Row], causes: list[str | None]
) -> None:
    before = [earlier(row) for row in ever]
    content = {"producer_id_rates": [rate(0, 4.0, is_violating=True, throttle_time_ms=9_000)]}
    actual = view("recent_violations", content | uses(now, before))
    assert [row["cause"] for row in actual] == causes


def earlier(row: Row) -> Row:
    """The same an hour before, and of ids of its own."""
    moved = {key: row[key] - timedelta(hours=1) for key in row if isinstance(row[key], datetime)}
    number = row["producer_id"]
    return row | moved | {"producer_id": None if number is None else number + 1_000_000}
