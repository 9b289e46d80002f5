"""Which quotas their use suggests, and which of them conf lets be asked for."""

from typing import Any, TypeGuard

from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.schemas.config_values import NumberValue
from quotaflow.schemas.configs import CONFIGS

from ...rows import Row, altered, at, fetched, quota, row, setting
from .view_tables import Picked, Tables, assert_outcomes, assert_shown, view

ADVICE = ("user", "advice", "recommended", "windows", "throttled_windows", "over_windows")


def used(second: float, usage: float, **others: Any) -> Row:
    """A window of bytes that alice produced at a broker, limited by no quota."""
    given = {"quota_type": "producer_byte_rate", "usage": usage, "throttled_requests": 0}
    return row("quota_usage", second, given | others)


def limited(second: float, usage: float, limit: float, **others: Any) -> Row:
    return used(second, usage, **({"quota_level": 3, "quota": limit} | others))


def throttled(second: float, usage: float, limit: float, **others: Any) -> Row:
    return limited(second, usage, limit, throttled_requests=3, **others)


def in_windows(count: int, *made: Row) -> list[Row]:
    """These rows in each of so many windows."""
    return [row | {"event_time": at(n)} for n in range(count) for row in made]


OWN = {"client_id": "etl", "quota_level": 1}
"""A client id for which its user has a quota: none of the user alone holds it."""

DEFAULT_ID = OWN | {"quota_level": 2}


OF_TIME = {"quota_type": "request_percentage"}
OF_CONSUMERS = {"quota_type": "consumer_byte_rate"}
BY_TIME = {"throttled_by": "request_percentage"}
SAMPLED = {"is_estimated": True, "share_requests": 0}


OF_WINDOWS: list[tuple[str, list[Row], Picked]] = [
    ("what is used, and a quarter", in_windows(10, used(0, 100e3)), [("set", 125e3, 10, 0, 0)]),
    (
        "a peak of one window in two hundred does not count",
        [*in_windows(199, used(0, 100e3)), used(999, 9e6)],
        [("set", 125e3, 200, 0, 1)],
    ),
    (
        "clients of a user add up at a broker, and the busiest broker counts",
        [used(0, 100e3), used(0, 60e3, client_id="other"), used(0, 10e3, broker_id=2)],
        [("set", 200e3, 2, 0, 0)],
    ),
    ("no less than 64 KiB/s", [used(0, 100.0)], [("set", 65_536.0, 1, 0, 0)]),
    ("nor than 1 %", [used(0, 0.1, **OF_TIME)], [("set", 1.0, 1, 0, 0)]),
    ("room enough: kept", [limited(0, 30.0, 100.0)], [("keep", 100.0, 1, 0, 0)]),
    (
        "throttled: a quarter more",
        in_windows(4, throttled(0, 99.0, 100.0)),
        [("raise", 125.0, 4, 4, 0)],
    ),
    (
        "never more than double",
        in_windows(4, throttled(0, 300.0, 100.0)),
        [("raise", 200.0, 4, 4, 4)],
    ),
    (
        "throttled by another kind of quota: kept",
        in_windows(4, throttled(0, 99.0, 100.0, **BY_TIME)),
        [("keep", 100.0, 4, 0, 0)],
    ),
    (
        "what it throttled of what it produced counts for the quota of request time",
        in_windows(
            4, limited(0, 9.0, 10.0, **OF_TIME), used(0, 0.0, throttled_requests=3, **BY_TIME)
        ),
        [("raise", 12.5, 4, 4, 0)],
    ),
    (
        "throttled now and then: kept",
        [throttled(0, 99.0, 100.0), *(limited(n, 50.0, 100.0) for n in range(1, 20))],
        [("keep", 100.0, 20, 1, 0)],
    ),
    (
        "what an earlier quota throttled shows nothing of the current one",
        in_windows(40, throttled(0, 99.0, 100.0))
        + [limited(n, 99.0, 125.0) for n in range(40, 50)],
        [("keep", 125.0, 50, 0, 0)],
    ),
    (
        "one window of a new quota says little",
        [limited(0, 99.0, 100.0), throttled(1, 99.0, 125.0)],
        [("keep", 125.0, 2, 1, 0)],
    ),
    (
        "one throttled window of three says little",
        [throttled(0, 99.0, 100.0), *(limited(n, 9.0, 100.0) for n in (1, 2))],
        [("keep", 100.0, 3, 1, 0)],
    ),
    (
        "two of three do not",
        [*in_windows(2, throttled(0, 99.0, 100.0)), limited(9, 9.0, 100.0)],
        [("raise", 125.0, 3, 2, 0)],
    ),
    (
        "the quota of the newest window is the current one; bytes are whole",
        [limited(0, 59_999.0, 100e3), used(11, 59_999.0)],
        [("set", 74_999.0, 2, 0, 0)],
    ),
    (
        "what a quota of one of its client ids throttled counts for that quota alone",
        in_windows(4, throttled(0, 99.0, 100.0, **OWN), limited(0, 200.0, 500.0)),
        [("keep", 500.0, 4, 0, 0)],
    ),
    (
        "neither its limit nor its use counts",
        in_windows(4, limited(0, 800.0, 1_000.0, **OWN), throttled(0, 500.0, 500.0)),
        [("raise", 625.0, 4, 4, 0)],
    ),
    (
        "nor what it throttled of another kind",
        in_windows(
            4,
            throttled(0, 99.0, 100.0, **OWN, **BY_TIME),
            limited(0, 9.0, 10.0, **OWN, **OF_TIME),
            limited(0, 2.0, 10.0, **OF_TIME),
            limited(0, 50.0, 100.0),
        ),
        [("keep", 100.0, 4, 0, 0), ("keep", 10.0, 4, 0, 0)],
    ),
    (
        "a user all of whose client ids have one has no row",
        in_windows(4, throttled(0, 99.0, 100.0, **DEFAULT_ID), used(0, 0.0)),
        [],
    ),
    (
        "a line that stands for many requests of its window shows no first quota",
        in_windows(4, used(0, 9e6, **SAMPLED)),
        [("set", None, 4, 0, None)],
    ),
    (
        "nor how far a raise goes, nor the use of request time",
        in_windows(4, throttled(0, 300.0, 100.0, **SAMPLED), used(0, 9.0, **OF_TIME)),
        [("raise", 125.0, 4, 4, None), ("set", None, 4, 0, None)],
    ),
    (
        "sampled lines of producers say nothing against what it consumes",
        in_windows(4, used(0, 100e3, **OF_CONSUMERS), used(0, 9e6, **SAMPLED)),
        [("set", 125e3, 4, 0, 0), ("set", None, 4, 0, None)],
    ),
    (
        "lines sampled more than a week ago do not matter",
        [used(-8 * 86_400, 9e6, **SAMPLED), used(0, 100e3)],
        [("set", 125e3, 1, 0, 0)],
    ),
    (
        "what is older than a week is forgotten",
        [used(-8 * 86_400, 9e6), used(0, 100e3)],
        [("set", 125e3, 1, 0, 0)],
    ),
]


def test_quota_advice() -> None:
    shown: dict[str, tuple[Tables, Picked]] = {
        case: ({"quota_usage": windows}, [("alice", *of_kind) for of_kind in expected])
        for case, windows, expected in OF_WINDOWS
    }
    assert_shown(shown, "quota_advice ORDER BY quota_type", *ADVICE)


def advised(usage: list[Row], **quotas: Any) -> list[Row]:
    """The advice from this usage, with these keys of conf."""
    settings = [setting(f"quotas.{key}", value) for key, value in quotas.items()]
    return view("quota_advice", {"quota_usage": usage, "settings": settings})


def test_percentile_and_headroom_are_those_of_conf() -> None:
    (row,) = advised(
        [used(n, 10.0 * n, **OF_TIME) for n in range(1, 5)], percentile=0.5, headroom=1
    )
    assert (row["percentile_usage"], row["recommended"], row["over_windows"]) == (20.0, 40.0, 0)


def test_a_first_quota_slows_nobody_whatever_conf_says() -> None:
    (row,) = advised([used(n, 1e6 * n) for n in range(1, 5)], percentile=0.01, headroom=0)
    assert (row["percentile_usage"], row["recommended"]) == (1e6, 4e6)


def test_floors_are_those_of_configs() -> None:
    (text,) = (answer.sql for answer in ANSWERS if answer.name == "quota_advice")
    floors = [config.values.floor for config in CONFIGS.values() if is_number(config.values)]
    assert {floor for floor in floors if floor is not None} == {65_536, 1}
    assert "THEN 65536e0 ELSE 1e0 END" in text


def is_number(values: object) -> TypeGuard[NumberValue]:
    return isinstance(values, NumberValue)


def asking(usage: list[Row], advised_users: str = "*") -> Tables:
    settings = [setting("quotas.advised_users", advised_users)]
    own = [quota(0, "producer_byte_rate", 200.0, user="alice")]
    return {"quota_usage": usage, "settings": settings, "client_quotas": own}


CERTIFIED = {"principal": "User:CN=a,O=b"}


NAMED: list[tuple[str, str, Row, list[str]]] = [
    ("nobody is named", "", {}, []),
    ("named", "bob\nalice", {}, ["alice"]),
    ("all", "*", {}, ["alice"]),
    ("a part of a name is no name", "alic", {}, []),
    ("a default holds it", "*", {"quota_level": 6, "quota": 1.0}, []),
    ("one of its client id holds it", "*", {"quota_level": 7, "quota": 1.0}, []),
    ("its own holds it: kept", "*", {"quota_level": 3, "quota": 1e9}, ["alice"]),
    ("one of a certificate", "bob\nCN=a,O=b", CERTIFIED, ["CN=a,O=b"]),
    ("a part of one", "CN=a", CERTIFIED, []),
    ("a name like two", "a\nb", {"principal": "User:a\nb"}, []),
    ("all, also certificates", "*", CERTIFIED, ["CN=a,O=b"]),
]


def test_only_what_conf_names_is_asked_for() -> None:
    shown: dict[str, tuple[Tables, Picked]] = {
        case: (asking([used(0, 100.0, **others)], advised), [(user,) for user in proposed])
        for case, advised, others, proposed in NAMED
    }
    assert_shown(shown, "quota_proposals", "entity_name")


OF_CLIENT_IDS: list[tuple[str, list[Row], list[str]]] = [
    (
        "one of its client ids, at another broker, has a quota that this would undo",
        [used(0, 9.0, broker_id=2, quota_level=7, quota=10.0), used(0, 100.0, client_id="b")],
        [],
    ),
    (
        "or had one in an earlier window",
        [used(0, 9.0, quota_level=8, quota=10.0), used(11, 100.0, client_id="b")],
        [],
    ),
    (
        "its own took the place of that",
        [used(0, 9.0, quota_level=7, quota=10.0), limited(11, 100.0, 200.0)],
        ["alice"],
    ),
    ("its own was taken off", [limited(0, 100.0, 200.0), used(11, 100.0)], ["alice"]),
]


def test_no_quota_of_client_ids_is_replaced() -> None:
    shown: dict[str, tuple[Tables, Picked]] = {
        case: (asking(windows), [(user,) for user in proposed])
        for case, windows, proposed in OF_CLIENT_IDS
    }
    assert_shown(shown, "quota_proposals", "entity_name")


US = setting("excluded.User:alice", "own")
EXCLUSIONS: dict[tuple[str, ...], dict[str, Tables]] = {
    ("alice",): {
        "nobody is excluded": {},
        "conf excludes another": {"settings": [setting("excluded.User:alic", "own")]},
        "conf did once": {
            "settings": [US, setting("excluded.User:alice", None, 60, is_removed=True)]
        },
        "it fetches as a consumer": {"fetch_sizes": [fetched(0, 1, 1)]},
    },
    (): {
        "conf excludes it": {"settings": [US]},
        "it fetches as a follower: a broker": {"fetch_sizes": [fetched(0, 1, 1, replica_id=2)]},
        "it altered quotas: an administrator": {
            "config_alterations": [altered(0, "x", "9", principal="User:alice", entity_type="user")]
        },
    },
}


def test_no_advice_names_whom_a_quota_must_not_slow() -> None:
    outcomes = {
        user: {case: tables | {"quota_usage": [used(0, 100.0)]} for case, tables in alike.items()}
        for user, alike in EXCLUSIONS.items()
    }
    assert_outcomes(outcomes, "quota_advice", "user")


PRODUCED = "producer_byte_rate"
UNLIMITED = float(2**63 - 1)
"""Long.MAX, the usual way to say so."""


CURRENT_QUOTAS: list[tuple[str, list[float], list[Row], Picked]] = [
    ("none is set: asked for", [], [], [("65536", None, False)]),
    (
        "raised a day after it was set",
        [100.0],
        [throttled(99, 99.0, 100.0), throttled(100, 99.0, 100.0)],
        [("125", "100", False)],
    ),
    ("goes on", [125.0], [limited(99, 9.0, 125.0)], [("125", "125", True)]),
    (
        "a second earlier it waits, and goes on",
        [100.0],
        [throttled(n, 99.0, 100.0) for n in (98, 99)],
        [("100", "100", True)],
    ),
    ("was taken off since", [], [limited(99, 9.0, 125.0)], []),
    (
        "unlimited",
        [UNLIMITED],
        [limited(99, 9.0, UNLIMITED)],
        [("9223372036854775808", "9223372036854775808", True)],
    ),
]


def test_a_quota_that_fits_is_asked_for_as_it_stands() -> None:
    shown: dict[str, tuple[Tables, Picked]] = {
        case: (
            {
                "settings": [setting("quotas.advised_users", "alice")],
                "quota_usage": [*in_windows(10, used(0, 100.0)), *windows],
                "client_quotas": [quota(-86_300, PRODUCED, n, user="alice") for n in current],
            },
            proposed,
        )
        for case, current, windows, proposed in CURRENT_QUOTAS
    }
    assert_shown(shown, "desired_configs", "config_value", "prior_value", "renew_only")


CAPACITY = setting("replication.capacity_bytes_per_s", 1_000.0)
NEARLY_FULL = in_windows(4, throttled(0, 99.0, 100.0))
BOB = {"principal": "User:bob"}
RAISED_BEFORE = {"event_time": at(-90_000), "run_id": "r", "number": 1, "step": "done"}
RAISED_BEFORE |= {"entity_type": "user", "entity_name": "bob", "operation": "SET"}
RAISED_BEFORE |= {"config_key": PRODUCED, "config_value": "400", "direction": "raise"}
BUDGETS: dict[str, tuple[list[Row], list[Row], Picked]] = {
    "no capacity in conf: nobody is raised": (
        [],
        NEARLY_FULL,
        [("alice", "no_capacity_for_raise")],
    ),
    "none of all brokers": (
        [CAPACITY | {"setting_value": None}, setting("replication.brokers.1", 1e9)],
        NEARLY_FULL,
        [("alice", "no_capacity_for_raise")],
    ),
    "within half of it": ([CAPACITY], in_windows(4, throttled(0, 380.0, 400.0)), [("alice", None)]),
    "over half of it": (
        [CAPACITY],
        in_windows(4, throttled(0, 401.0, 402.0)),
        [("alice", "raise_over_budget")],
    ),
    "over half of the smallest broker's": (
        [CAPACITY, setting("replication.brokers.7", 100.0)],
        NEARLY_FULL,
        [("alice", "raise_over_budget")],
    ),
    "a part that conf names": (
        [CAPACITY, setting("quotas.raise_budget_share", 0.1)],
        NEARLY_FULL,
        [("alice", "raise_over_budget")],
    ),
    "all raises together": (
        [CAPACITY],
        in_windows(
            4, *(throttled(0, 200.0 + n, 200.0 + n, principal=f"User:{n}") for n in range(3))
        ),
        [("0", None), ("1", "raise_over_budget"), ("2", "raise_over_budget")],
    ),
    "what a plan raised before takes its part": (
        [CAPACITY],
        in_windows(4, throttled(0, 100.0, 100.0), limited(0, 9.0, 400.0, **BOB)),
        [("alice", "raise_over_budget"), ("bob", None)],
    ),
    "request time is not planned from the request log": (
        [CAPACITY],
        in_windows(4, used(0, 9.0, **OF_TIME), limited(0, 9.0, 90.0, **OF_TIME, **BOB)),
        [("alice", "usage_estimated")],
    ),
    "nor from bytes of sampled lines, which a raise does not need": (
        [CAPACITY],
        in_windows(4, used(0, 9e3, **SAMPLED), throttled(0, 9.0, 40.0, **SAMPLED, **BOB)),
        [("alice", "usage_sampled"), ("bob", None)],
    ),
    "nor are bytes of a user with share consumers": (
        [CAPACITY],
        [
            *in_windows(4, throttled(0, 99.0, 100.0, **OF_CONSUMERS, share_requests=1)),
            *in_windows(4, used(0, 99.0, **OF_CONSUMERS, **BOB)),
            used(9, 0.0, **OF_CONSUMERS, **BOB, share_requests=1),
        ],
        [("alice", "usage_estimated")],
    ),
}


def test_raises_stay_within_capacity_and_budget() -> None:
    everybody = setting("quotas.advised_users", "*")
    cases: dict[str, tuple[Tables, Picked]] = {
        case: ({"settings": [everybody, *conf], "quota_usage": usage}, expected)
        for case, (conf, usage, expected) in BUDGETS.items()
    }
    of_bob = [quota(0, "producer_byte_rate", 400.0, user="bob")]
    raised = {"config_changes": [RAISED_BEFORE], "client_quotas": of_bob}
    cases["what a plan raised before takes its part"][0].update(raised)
    assert_shown(cases, "quota_proposals ORDER BY entity_name", "entity_name", "blocked_reason")
