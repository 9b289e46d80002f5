"""Why clients wait or fail: a planted fault among healthy clients, and none where all is well."""

import random
from itertools import chain
from typing import Any

import pytest

from ... import case_tables
from ...cases import cases
from ...rows import (
    Row,
    altered,
    at,
    behind,
    fault,
    limited,
    moved,
    part_waits,
    quota,
    reassigned,
    row,
    setting,
    times,
    used,
    waits,
)
from .view_tables import Tables, signals, view

BEGAN, MINUTES = 25, 30
"""The minute in which a fault begins, and how long all last."""
HEALTHY = {"request_queue": 1.0, "local": 2.0, "response_queue": 0.5, "send": 0.5}
PEERS = [f"User:u{n}" for n in range(6)]


def minutes(principal: str, fault: Row | None = None, **others: Any) -> list[Row]:
    """A client that works for half an hour, and has a fault from BEGAN on."""
    api = others.pop("api", "PRODUCE")
    during = others.pop("during", {})
    rows = []
    for n in range(MINUTES):
        is_faulty = fault is not None and n >= BEGAN
        each = HEALTHY | {"local": 2.0 + n % 3} | (fault or {} if is_faulty else {})
        given = {"principal": principal, "client_id": principal[5:]} | others
        rows.append(times(60 * n, api, each=each, **given | (during if is_faulty else {})))
    return rows


def among_healthy(*rows: Row) -> Tables:
    return {"request_times": [*(row for each in PEERS for row in minutes(each)), *rows]}


def diagnosed(content: Tables) -> list[Row]:
    return view("client_diagnoses ORDER BY principal, client_id, symptom, rank", content)


BAD = {"principal": "User:bad", "client_id": "bad"}
RATE = "producer_byte_rate"
THROTTLED = BAD | {"throttled_by": RATE, "throttle_time_ms": 9_000.0, "quota_bucket_user": "bad"}


@cases(
    ("fault", "others", "expected"),
    *case_tables.rows(__file__, "a_planted_fault_is_named"),
    (
        "a quota of its own",
        {"throttle": 900.0},
        {
            "quota_usage": [used(60 * 26, RATE, 2_000.0, amount=9, **THROTTLED)],
            "config_alterations": [limited(60 * 24, RATE, "1000", entity_name="bad")],
        },
        ("quota", 0.95, "producer_byte_rate"),
    ),
    (
        "a follower that is behind",
        {"remote": 600.0},
        {
            "traffic": [moved(60 * 26, 100, **BAD, topic_id="t")],
            "replica_lag": [behind(60 * 26, 3, 500, 0, 10, topic_id="t")],
        },
        ("slow_follower", 0.7, "3"),
    ),
)
def test_a_planted_fault_is_named(fault: Row, others: Row, expected: tuple[Any, ...]) -> None:
    tables = {name: rows for name, rows in others.items() if isinstance(rows, list)}
    client = {name: value for name, value in others.items() if not isinstance(value, list)}
    rows = diagnosed(among_healthy(*minutes("User:bad", fault, **client)) | tables)
    assert {(row["principal"], row["symptom"]) for row in rows} == {("User:bad", "slow")}
    row = rows[0]
    cause, confidence, detail = expected
    assert (row["cause"], row["confidence"], row["detail"]) == (cause, confidence, detail)
    assert row["share"] == pytest.approx(1.0, abs=0.05)
    assert sum(each["share"] for each in rows) == pytest.approx(1.0)
    assert sum(each["ms"] for each in row["budget"]) == pytest.approx(row["waited_ms"])
    assert (row["since"], row["until"]) == (at(60 * BEGAN), at(60 * MINUTES))
    assert row["usual_ms"] < 10


@cases(
    ("fault", "expected"),
    ("its client waits for the quota", {"throttle": 900.0}, ("bad", pytest.approx(0.99, abs=0.01))),
    ("its client waits for the broker", {"local": 900.0}, (None, None)),
)
def test_a_raise_names_the_wait_that_the_quota_explains(
    fault: Row, expected: tuple[object, ...]
) -> None:
    at_its_quota = {"quota": 1_000.0, "throttled_requests": 3} | THROTTLED
    windows = [used(60 * 26 + n, RATE, 999.0, **at_its_quota) for n in range(4)]
    content = among_healthy(*minutes("User:bad", fault)) | {
        "settings": [setting("quotas.advised_users", "bad")],
        "client_quotas": [quota(-2 * 86_400, RATE, 1_000.0, user="bad")],
        "quota_usage": windows,
    }
    (proposal,) = view("quota_proposals", content)
    assert proposal["reason_code"] == "quota_throttles"
    assert (proposal["subject"], signals(proposal)["wait_share"]) == expected


def test_many_small_waits_for_a_quota_are_a_symptom() -> None:
    """Eleven seconds of each minute, in a thousand requests."""
    rows = diagnosed(among_healthy(*minutes("User:bad", {"throttle": 11.0}, requests=1_000)))
    assert {(row["principal"], row["symptom"]) for row in rows} == {("User:bad", "slow")}
    assert rows[0]["cause"] == "quota"


def test_few_long_waits_for_a_quota_are_a_symptom() -> None:
    """A consumer that is throttled for half a minute sends two requests in it."""
    fetches = minutes("User:bad", {"throttle": 30_000.0}, api="FETCH", requests=2)
    rows = diagnosed(among_healthy(*fetches))
    assert {(row["principal"], row["symptom"]) for row in rows} == {("User:bad", "slow")}
    assert rows[0]["cause"] == "quota"


@cases(
    ("each_ms", "is_slow"),
    ("one of five waits two seconds", [2_000.0] + [5.0] * 4, False),
    ("one of a hundred waits a minute", [60_000.0] + [5.0] * 99, False),
    ("five of a thousand wait twenty seconds", [20_000.0] * 5 + [5.0] * 995, False),
    ("five of fifty wait two seconds", [2_000.0] * 5 + [5.0] * 45, True),
    ("five of five wait half a second", [500.0] * 5, True),
)
def test_few_slow_requests_make_no_slow_client(each_ms: list[float], *, is_slow: bool) -> None:
    """One long request among few lifts the mean: most requests are as usual."""
    mean = {"local": sum(each_ms) / len(each_ms)}
    during = {"waited_histogram": waits(*each_ms)}
    fault = minutes("User:bad", mean, requests=len(each_ms), during=during)
    assert bool(diagnosed(among_healthy(*fault))) is is_slow


@cases(
    ("each_ms", "is_slow"),
    ("one of thirty waits twenty seconds", [20_000.0] + [90.0] * 29, False),
    ("five of thirty wait two seconds", [2_000.0] * 5 + [90.0] * 25, True),
    ("all wait half a second", [500.0] * 30, True),
)
def test_who_always_waits_long_is_not_slow_for_one_request(
    each_ms: list[float], *, is_slow: bool
) -> None:
    """What is long for others is usual for this client."""
    given = {"principal": "User:big", "client_id": "big"}
    rows = [
        times(60 * n, "PRODUCE", 30, each={"local": sum(ms) / len(ms)}, **given)
        | {"waited_histogram": waits(*ms), "part_histograms": part_waits({"local": ms})}
        for n in range(MINUTES)
        for ms in [each_ms if n >= BEGAN else [90.0] * 30]
    ]
    assert bool(diagnosed(among_healthy(*rows))) is is_slow


@cases(
    ("waits_ms", "is_old", "causes"),
    ("one of eighteen waits for it", [1_400.0] + [8.0] * 17, False, {"slow_appends"}),
    ("five of eighteen do", [300.0] * 5 + [8.0] * 13, False, {"slow_appends", "busy_network"}),
    (
        "rows of an older version do not say how many do",
        [1_400.0] + [8.0] * 17,
        True,
        {"slow_appends", "busy_network"},
    ),
)
def test_one_request_that_waits_for_a_network_thread_is_no_cause(
    waits_ms: list[float], causes: set[str], *, is_old: bool
) -> None:
    requests = len(waits_ms)
    mean = {"local": 60.0, "response_queue": sum(waits_ms) / requests}
    each_ms = {"local": [60.0] * requests, "response_queue": waits_ms}
    during = {
        "waited_histogram": waits(*(60.0 + ms for ms in waits_ms)),
        "part_histograms": None if is_old else part_waits(each_ms),
    }
    rows = diagnosed(among_healthy(*minutes("User:bad", mean, requests=requests, during=during)))
    assert {row["cause"] for row in rows} - {"not_explained"} == causes


@cases(
    ("throttled", "is_slow"),
    ("one of five was throttled for two seconds", 1, False),
    ("two of five were", 2, True),
)
def test_one_throttle_makes_no_slow_client(throttled: int, *, is_slow: bool) -> None:
    each_ms = [2_000.0] * throttled + [5.0] * (5 - throttled)
    during = {"waited_histogram": waits(*each_ms), "throttled_requests": throttled}
    fault = {"throttle": 400.0 * throttled}
    rows = diagnosed(among_healthy(*minutes("User:bad", fault, requests=5, during=during)))
    assert bool(rows) is is_slow


def test_a_replica_that_moves_is_not_what_a_client_waits_for() -> None:
    """It is not in sync, so acks=all does not wait for it."""
    behind_now = [behind(60 * 26, 3, 500, 0, 10), behind(60 * 26, 2, 5, 0, 10)]
    moves = [reassigned(60 * 20, "requested", n, place=n - 2) for n in (2, 3)]
    content = among_healthy(*minutes("User:bad", {"remote": 600.0})) | {
        "topics": [row("topics", -600, {}, topic="orders")],
        "traffic": [moved(60 * 26, 100, **BAD)],
    }
    lags = {"replica_lag": behind_now[:1], "reassignment_changes": moves}
    assert diagnosed(content | lags)[0]["cause"] == "slow_replicas"
    first = diagnosed(content | {"replica_lag": behind_now, "reassignment_changes": moves[1:]})[0]
    assert (first["cause"], first["detail"]) == ("slow_follower", "2")


@cases(
    ("errors", "cause", "detail"),
    ("no permission", [(29, 10)], "not_authorized", "TOPIC_AUTHORIZATION_FAILED"),
    (
        "an unknown topic, and few others",
        [(3, 9), (7, 1)],
        "unknown_topic",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    ("too large", [(10, 10)], "too_large", "MESSAGE_TOO_LARGE"),
    ("fenced", [(90, 8)], "fenced", "PRODUCER_FENCED"),
    ("a code that no cause has", [(68, 8)], "other_errors", "NON_EMPTY_GROUP"),
)
def test_errors_are_named(errors: list[tuple[int, int]], cause: str, detail: str) -> None:
    listed = [{"error_code": code, "requests": count} for code, count in errors]
    rows = diagnosed(among_healthy(*minutes("User:bad", {}, during={"errors": listed})))
    assert [(row["principal"], row["symptom"]) for row in rows] == [("User:bad", "failing")] * len(
        rows
    )
    assert (rows[0]["cause"], rows[0]["detail"]) == (cause, detail)
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)


@cases(
    ("answers", "causes"),
    ("each second of half a minute", 30, ["unknown_topic"]),
    ("until the topic is created", 29, []),
)
def test_who_asks_for_the_metadata_of_no_topic_for_long_fails(
    answers: int, causes: list[str]
) -> None:
    missing = {"errors": [{"error_code": 3, "requests": answers}]}
    metadata = minutes("User:bad", {}, during=missing, api="METADATA")
    assert [row["cause"] for row in diagnosed(among_healthy(*metadata))] == causes


def test_a_neighbour_that_takes_the_threads_is_named_where_others_wait_for_them() -> None:
    waiting = minutes("User:bad", {"request_queue": 300.0})
    noisy = minutes("User:noisy", {"local": 40.0}, requests=1_000)
    rows = diagnosed(among_healthy(*waiting, *noisy))
    assert {row["principal"] for row in rows} == {"User:bad"}
    assert (rows[0]["cause"], rows[0]["detail"]) == ("noisy_neighbour", "noisy")
    assert rows[0]["facts"] == [{"fact": "neighbour_principal", "text": "User:noisy"}]
    # It takes as much, and nobody waits.
    assert diagnosed(among_healthy(*minutes("User:bad"), *noisy)) == []


def test_a_broker_is_slow_if_it_is_for_all_its_clients() -> None:
    slow = [row for each in PEERS for row in minutes(each, {"local": 400.0})]
    rows = diagnosed({"request_times": slow})
    assert {(row["cause"], row["detail"]) for row in rows if row["rank"] == 1} == {
        ("slow_broker", "1")
    }
    assert len({row["principal"] for row in rows}) == len(PEERS)


def test_one_more_slow_client_does_not_make_its_broker_slow() -> None:
    slow = [minutes("User:bad", {"local": 400.0}), minutes("User:odd", {"local": 4_000.0})]
    rows = diagnosed(among_healthy(*chain.from_iterable(slow)))
    causes = {row["principal"]: row["cause"] for row in rows if row["rank"] == 1}
    assert causes == {"User:bad": "slow_appends", "User:odd": "slow_appends"}


@cases(
    ("error_code", "cause", "is_named"),
    ("NOT_ENOUGH_REPLICAS", 19, "not_enough_replicas", True),
    ("OFFSET_OUT_OF_RANGE", 1, "out_of_range", False),
    ("NOT_COORDINATOR", 16, "coordinator_changes", False),
)
def test_a_throttle_of_replicas_concerns_who_lacks_replicas(
    error_code: int, cause: str, is_named: bool
) -> None:
    """A replica that a throttle slows does not come back in sync."""
    errors = {"errors": [{"error_code": error_code, "requests": 10}]}
    named = {"entity_type": "broker", "entity_name": "1"}
    content = among_healthy(*minutes("User:bad", {}, during=errors)) | {
        "config_alterations": [altered(60 * 24, _THROTTLE_RATE, "1", **named)],
    }
    (row, *_) = diagnosed(content)
    assert row["cause"] == cause
    facts = {each["fact"]: each["text"] for each in row["facts"]}
    assert facts.get("changed") == (f"broker 1: {_THROTTLE_RATE}" if is_named else None)


@cases(
    ("faults", "expected"),
    (
        "a follower lacks some",
        [("unavailable_offset", 3, {}), ("offset_too_large", 7, {})],
        {"out_of_range": 0.7, "missing_at_replica": 0.3},
    ),
    (
        "a replica deleted what the leader has",
        [("offset_too_small", 10, {"answers_leader_has": 10})],
        {"missing_at_replica": 1.0},
    ),
    ("none has them", [("offset_too_small", 10, {"answers_leader_has": 0})], {"out_of_range": 1.0}),
    ("another minute", [("unavailable_offset", 9, {"event_time": at(0)})], {"out_of_range": 1.0}),
    (
        "of another client",
        [("unavailable_offset", 9, {"principal": "User:u1"})],
        {"out_of_range": 1.0},
    ),
)
def test_offsets_that_the_leader_has_exist(
    faults: list[tuple[str, int, Row]], expected: dict[str, float]
) -> None:
    errors = {"errors": [{"error_code": 1, "requests": 10}]}
    client = minutes("User:bad", {}, during=errors, api="FETCH")
    came = [fault(60 * 26, kind, answers, **BAD | others) for kind, answers, others in faults]
    rows = diagnosed(among_healthy(*client) | {"fetch_faults": came})
    assert {each["cause"]: each["share"] for each in rows} == pytest.approx(expected)


_THROTTLE_RATE = "leader.replication.throttled.rate"
_THROTTLE_LIST = "leader.replication.throttled.replicas"


_FORMAT = "compression.type"


@cases(
    ("altered_at", "entity", "changed"),
    ("its topic, a minute before", 60 * 24, ("topic", "orders"), f"topic orders: {_FORMAT}"),
    ("in the same minute", 60 * 25 + 9, ("topic", "orders"), f"topic orders: {_FORMAT}"),
    ("its broker", 60 * 24, ("broker", "1"), f"broker 1: {_FORMAT}"),
    ("all brokers", 60 * 24, ("broker", ""), f"broker default: {_FORMAT}"),
    ("long before", 60 * 15, ("topic", "orders"), None),
    ("after it began", 60 * 27, ("topic", "orders"), None),
    ("a topic that it does not use", 60 * 24, ("topic", "other"), None),
    ("another broker", 60 * 24, ("broker", "2"), None),
    ("a throttle of replicas of its broker", 60 * 24, ("broker", "1", _THROTTLE_RATE), None),
    ("threads that serve no request", 60 * 24, ("broker", "1", "background.threads"), None),
    ("threads of the cleaner", 60 * 24, ("broker", "1", "log.cleaner.threads"), None),
    ("a throttle of replicas of its topic", 60 * 24, ("topic", "orders", _THROTTLE_LIST), None),
    ("what only deletes", 60 * 24, ("topic", "orders", "retention.ms"), None),
    ("where new replicas go", 60 * 24, ("broker", "1", "cordoned.log.dirs"), None),
    ("a quota of its own", 60 * 24, ("user", "bad", "consumer_byte_rate"), None),
)
def test_a_change_right_before_that_can_be_why_is_named(
    altered_at: int, entity: tuple[str, ...], changed: str | None
) -> None:
    kind, name, key = (*entity, _FORMAT)[:3]
    named = {"entity_type": kind, "entity_name": name}
    content = among_healthy(*minutes("User:bad", {"local": 400.0})) | {
        "traffic": [moved(60 * 20, 100, **BAD, topic="orders", topic_id=None)],
        "config_alterations": [altered(altered_at, key, "1", **named)],
    }
    (row, *_) = diagnosed(content)
    facts = {each["fact"]: each["text"] for each in row["facts"]}
    assert facts.get("changed") == changed
    assert facts.get("changed_by") == (None if changed is None else "User:admin")


def test_a_change_of_its_topic_comes_before_a_later_one_of_its_broker() -> None:
    named = (
        ("topic", "orders", 60 * 24, _FORMAT),
        ("broker", "1", 60 * 24 + 30, _FORMAT),
        ("topic", "orders", 60 * 24 + 40, "retention.ms"),
    )
    content = among_healthy(*minutes("User:bad", {"local": 400.0})) | {
        "traffic": [moved(60 * 20, 100, **BAD, topic="orders", topic_id=None)],
        "config_alterations": [
            altered(second, key, "1", entity_type=kind, entity_name=name)
            for kind, name, second, key in named
        ],
    }
    facts = {each["fact"]: each["text"] for each in diagnosed(content)[0]["facts"]}
    assert facts["changed"] == f"topic orders: {_FORMAT}"


REBALANCE = [{"error_code": 27, "requests": 10}]
IN_TRANSACTION = [{"error_code": 51, "requests": 10}]


@cases(
    ("client",),
    ("it waits 49 ms", minutes("User:fine", {"local": 45.0})),
    ("four requests wait", minutes("User:fine", {"local": 900.0}, requests=4)),
    ("records are not there yet", minutes("User:fine", {"remote": 500.0}, api="FETCH")),
    ("errors of normal work", minutes("User:fine", {}, during={"errors": REBALANCE})),
    ("transactions in a row", minutes("User:fine", {}, during={"errors": IN_TRANSACTION})),
    (
        "few waits for a quota, nine seconds of a minute",
        minutes("User:fine", {"throttle": 4_500.0}, api="FETCH", requests=2),
    ),
    (
        "few waits for records, half of a minute each",
        minutes("User:fine", {"remote": 30_000.0}, api="FETCH", requests=2),
    ),
    (
        "small waits for a quota, nine seconds of a minute",
        minutes("User:fine", {"throttle": 9.0}, requests=1_000),
    ),
    (
        "it always waits for replicas",
        minutes("User:fine")
        + [
            times(
                60 * n,
                "PRODUCE",
                each=HEALTHY | {"remote": 80.0},
                principal="User:acks",
                client_id="a",
            )
            for n in range(MINUTES)
        ],
    ),
    (
        "it always takes long",
        [
            times(
                60 * n,
                "PRODUCE",
                each=HEALTHY | {"local": 90.0},
                principal="User:big",
                client_id="b",
            )
            for n in range(MINUTES)
        ],
    ),
)
def test_a_harmless_twin_has_no_diagnosis(client: list[Row]) -> None:
    assert diagnosed(among_healthy(*client)) == []


def test_none_of_a_thousand_healthy_clients_is_accused() -> None:
    chance = random.Random(7)
    rows = [
        times(
            60 * n,
            chance.choice(["PRODUCE", "FETCH"]),
            chance.randrange(1, 50),
            each={part: chance.expovariate(1 / ms) for part, ms in HEALTHY.items()},
            principal=f"User:p{client}",
            client_id=f"app-{client}",
        )
        for client in range(1_000)
        for n in range(12)
    ]
    assert diagnosed({"request_times": rows}) == []
