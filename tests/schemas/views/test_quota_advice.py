"""Which quotas their use suggests, and which of them conf lets be asked for."""

from typing import Any, TypeGuard

import pytest

from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.config_values import NumberValue
from quotaflow.schemas.configs import CONFIGS

from ...cases import cases
from ...delta_tables import Fill
from ...rows import Row, altered, at, fetched, quota, row, setting
from .view_tables import by_case, make_tables, picked, rows

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

ALTERED_BY = ("config_changes", "config_alterations", "client_quotas")

DEFAULT_ID = OWN | {"quota_level": 2}


@pytest.fixture
def filled(fill: Fill) -> Fill:
    """Fills the tables the views read; those not named are empty."""
    for name in ("quota_usage", "settings", *ALTERED_BY, "fetch_sizes", "configs"):
        fill(name, [])
    return fill


@cases(
    ("windows", "expected"),
    (
        "what is used, and a quarter",
        [used(n, 100e3) for n in range(10)],
        [("alice", "set", 125e3, 10, 0, 0)],
    ),
    (
        "a peak of one window in two hundred does not count",
        [*(used(n, 100e3) for n in range(199)), used(999, 9e6)],
        [("alice", "set", 125e3, 200, 0, 1)],
    ),
    (
        "clients of a user add up at a broker, and the busiest broker counts",
        [used(0, 100e3), used(0, 60e3, client_id="other"), used(0, 10e3, broker_id=2)],
        [("alice", "set", 200e3, 2, 0, 0)],
    ),
    ("no less than 64 KiB/s", [used(0, 100.0)], [("alice", "set", 65_536.0, 1, 0, 0)]),
    (
        "nor than 1 %",
        [used(0, 0.1, quota_type="request_percentage")],
        [("alice", "set", 1.0, 1, 0, 0)],
    ),
    ("room enough: kept", [limited(0, 30.0, 100.0)], [("alice", "keep", 100.0, 1, 0, 0)]),
    (
        "throttled: a quarter more",
        [throttled(n, 99.0, 100.0) for n in range(4)],
        [("alice", "raise", 125.0, 4, 4, 0)],
    ),
    (
        "never more than double",
        [throttled(n, 300.0, 100.0) for n in range(4)],
        [("alice", "raise", 200.0, 4, 4, 4)],
    ),
    (
        "throttled by another kind of quota: kept",
        [throttled(n, 99.0, 100.0, throttled_by="request_percentage") for n in range(4)],
        [("alice", "keep", 100.0, 4, 0, 0)],
    ),
    (
        "what it throttled of what it produced counts for the quota of request time",
        in_windows(
            4,
            limited(0, 9.0, 10.0, quota_type="request_percentage"),
            used(0, 0.0, throttled_requests=3, throttled_by="request_percentage"),
        ),
        [("alice", "raise", 12.5, 4, 4, 0)],
    ),
    (
        "throttled now and then: kept",
        [throttled(0, 99.0, 100.0), *(limited(n, 50.0, 100.0) for n in range(1, 20))],
        [("alice", "keep", 100.0, 20, 1, 0)],
    ),
    (
        "what an earlier quota throttled shows nothing of the current one",
        [
            *(throttled(n, 99.0, 100.0) for n in range(40)),
            *(limited(n, 99.0, 125.0) for n in range(40, 50)),
        ],
        [("alice", "keep", 125.0, 50, 0, 0)],
    ),
    (
        "one window of a new quota says little",
        [limited(0, 99.0, 100.0), throttled(1, 99.0, 125.0)],
        [("alice", "keep", 125.0, 2, 1, 0)],
    ),
    (
        "the quota of the newest window is the current one; bytes are whole",
        [limited(0, 59_999.0, 100e3), used(11, 59_999.0)],
        [("alice", "set", 74_999.0, 2, 0, 0)],
    ),
    (
        "what a quota of one of its client ids throttled counts for that quota alone",
        in_windows(4, throttled(0, 99.0, 100.0, **OWN), limited(0, 200.0, 500.0)),
        [("alice", "keep", 500.0, 4, 0, 0)],
    ),
    (
        "neither its limit nor its use counts",
        in_windows(4, limited(0, 800.0, 1_000.0, **OWN), throttled(0, 500.0, 500.0)),
        [("alice", "raise", 625.0, 4, 4, 0)],
    ),
    (
        "nor what it throttled of another kind",
        in_windows(
            4,
            throttled(0, 99.0, 100.0, **OWN, throttled_by="request_percentage"),
            limited(0, 9.0, 10.0, **OWN, quota_type="request_percentage"),
            limited(0, 2.0, 10.0, quota_type="request_percentage"),
            limited(0, 50.0, 100.0),
        ),
        [("alice", "keep", 100.0, 4, 0, 0), ("alice", "keep", 10.0, 4, 0, 0)],
    ),
    (
        "a user all of whose client ids have one has no row",
        in_windows(4, throttled(0, 99.0, 100.0, **DEFAULT_ID), used(0, 0.0)),
        [],
    ),
    (
        "what is older than a week is forgotten",
        [used(-8 * 86_400, 9e6), used(0, 100e3)],
        [("alice", "set", 125e3, 1, 0, 0)],
    ),
)
def test_quota_advice(
    warehouse: Warehouse, filled: Fill, windows: list[Row], expected: list[tuple[Any, ...]]
) -> None:
    filled("quota_usage", windows)
    actual = rows(warehouse, "SELECT * FROM quota_advice ORDER BY quota_type")
    assert picked(actual, *ADVICE) == expected


def test_percentile_and_headroom_are_those_of_conf(warehouse: Warehouse, filled: Fill) -> None:
    filled("settings", [setting("quotas.percentile", 0.5), setting("quotas.headroom", 1.0)])
    filled("quota_usage", [used(n, 10.0 * n, quota_type="request_percentage") for n in range(1, 5)])
    (row,) = rows(warehouse, "SELECT * FROM quota_advice")
    assert (row["percentile_usage"], row["recommended"], row["over_windows"]) == (20.0, 40.0, 0)


def test_a_first_quota_slows_nobody_whatever_conf_says(warehouse: Warehouse, filled: Fill) -> None:
    filled("settings", [setting("quotas.percentile", 0.01), setting("quotas.headroom", 0)])
    filled("quota_usage", [used(n, 1e6 * n) for n in range(1, 5)])
    (row,) = rows(warehouse, "SELECT * FROM quota_advice")
    assert (row["percentile_usage"], row["recommended"]) == (1e6, 4e6)


def test_floors_are_those_of_configs() -> None:
    (text,) = (answer.sql for answer in ANSWERS if answer.name == "quota_advice")
    floors = [config.values.floor for config in CONFIGS.values() if is_number(config.values)]
    assert {floor for floor in floors if floor is not None} == {65_536, 1}
    assert "THEN 65536e0 ELSE 1e0 END" in text


def is_number(values: object) -> TypeGuard[NumberValue]:
    return isinstance(values, NumberValue)


CERTIFIED = {"principal": "User:CN=a,O=b"}


@cases(
    ("advised", "others", "proposed"),
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
)
def test_only_what_conf_names_is_asked_for(
    warehouse: Warehouse, filled: Fill, advised: str, others: Row, proposed: list[str]
) -> None:
    filled("settings", [setting("quotas.advised_users", advised)])
    filled("quota_usage", [used(0, 100.0, **others)])
    actual = rows(warehouse, "SELECT * FROM quota_proposals")
    assert [row["entity_name"] for row in actual] == proposed


@cases(
    ("windows", "proposed"),
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
)
def test_no_quota_of_client_ids_is_replaced(
    warehouse: Warehouse, filled: Fill, windows: list[Row], proposed: list[str]
) -> None:
    filled("settings", [setting("quotas.advised_users", "*")])
    filled("quota_usage", windows)
    actual = rows(warehouse, "SELECT * FROM quota_proposals")
    assert [row["entity_name"] for row in actual] == proposed


EXCLUSIONS: dict[str, tuple[dict[str, list[Row]], list[str]]] = {
    "nobody is excluded": ({}, ["alice"]),
    "conf excludes another": ({"settings": [setting("excluded.User:alic", "own")]}, ["alice"]),
    "conf excludes it": ({"settings": [setting("excluded.User:alice", "own")]}, []),
    "conf did once": (
        {
            "settings": [
                setting("excluded.User:alice", "own"),
                setting("excluded.User:alice", None, 60, is_removed=True),
            ]
        },
        ["alice"],
    ),
    "it fetches as a consumer": ({"fetch_sizes": [fetched(0, 1, 1)]}, ["alice"]),
    "it fetches as a follower: a broker": ({"fetch_sizes": [fetched(0, 1, 1, replica_id=2)]}, []),
    "it altered quotas: an administrator": (
        {"config_alterations": [altered(0, "x", "9", principal="User:alice", entity_type="user")]},
        [],
    ),
}


@pytest.fixture(scope="module")
def left() -> dict[str, list[Row]]:
    """The advice of each case of EXCLUSIONS."""
    cases = {
        case: {"quota_usage": [used(0, 100.0)], **more} for case, (more, _) in EXCLUSIONS.items()
    }
    return by_case(cases, "SELECT * FROM quota_advice")


@pytest.mark.parametrize("case", EXCLUSIONS)
def test_no_advice_names_whom_a_quota_must_not_slow(left: dict[str, list[Row]], case: str) -> None:
    assert [row["user"] for row in left[case]] == EXCLUSIONS[case][1]


UNLIMITED = float(2**63 - 1)
"""Long.MAX, the usual way to say so."""


@cases(
    ("current", "windows", "proposed"),
    ("none is set: asked for", None, [], [("65536", None, False)]),
    (
        "raised a day after it was set",
        100.0,
        [throttled(99, 99.0, 100.0), throttled(100, 99.0, 100.0)],
        [("125", "100", False)],
    ),
    ("goes on", 125.0, [limited(99, 9.0, 125.0)], [("125", "125", True)]),
    (
        "a second earlier it waits, and goes on",
        100.0,
        [throttled(n, 99.0, 100.0) for n in (98, 99)],
        [("100", "100", True)],
    ),
    ("was taken off since", None, [limited(99, 9.0, 125.0)], []),
    (
        "unlimited",
        UNLIMITED,
        [limited(99, 9.0, UNLIMITED)],
        [("9223372036854775808", "9223372036854775808", True)],
    ),
)
def test_a_quota_that_fits_is_asked_for_as_it_stands(
    warehouse: Warehouse, current: float | None, windows: list[Row], proposed: list[tuple[Any, ...]]
) -> None:
    content = {
        "settings": [setting("quotas.advised_users", "alice")],
        "quota_usage": [*(used(n, 100.0) for n in range(10)), *windows],
        "client_quotas": [quota(-86_300, "producer_byte_rate", current, user="alice")]
        if current
        else [],
    }
    make_tables(warehouse, content)
    actual = rows(warehouse, "SELECT * FROM desired_configs")
    assert picked(actual, "config_value", "prior_value", "renew_only") == proposed


CAPACITY = setting("replication.capacity_bytes_per_s", 1_000.0)
BUDGETS: dict[str, tuple[dict[str, list[Row]], dict[str, str | None]]] = {
    "no capacity in conf: nobody is raised": (
        {"quota_usage": [throttled(n, 99.0, 100.0) for n in range(4)]},
        {"alice": "no_capacity_for_raise"},
    ),
    "none of all brokers": (
        {
            "settings": [
                setting("replication.capacity_bytes_per_s", None),
                setting("replication.brokers.1", 1e9),
            ],
            "quota_usage": [throttled(n, 99.0, 100.0) for n in range(4)],
        },
        {"alice": "no_capacity_for_raise"},
    ),
    "within half of it": (
        {"settings": [CAPACITY], "quota_usage": [throttled(n, 380.0, 400.0) for n in range(4)]},
        {"alice": None},
    ),
    "over half of it": (
        {"settings": [CAPACITY], "quota_usage": [throttled(n, 401.0, 402.0) for n in range(4)]},
        {"alice": "raise_over_budget"},
    ),
    "over half of the smallest broker's": (
        {
            "settings": [CAPACITY, setting("replication.brokers.7", 100.0)],
            "quota_usage": [throttled(n, 99.0, 100.0) for n in range(4)],
        },
        {"alice": "raise_over_budget"},
    ),
    "a part that conf names": (
        {
            "settings": [CAPACITY, setting("quotas.raise_budget_share", 0.1)],
            "quota_usage": [throttled(n, 99.0, 100.0) for n in range(4)],
        },
        {"alice": "raise_over_budget"},
    ),
    "all raises together": (
        {
            "settings": [CAPACITY],
            "quota_usage": [
                throttled(n, 200.0 + m, 200.0 + m, principal=f"User:{name}")
                for n in range(4)
                for m, name in enumerate("abc")
            ],
        },
        {"a": None, "b": "raise_over_budget", "c": "raise_over_budget"},
    ),
    "what a plan raised before takes its part": (
        {
            "settings": [CAPACITY],
            "quota_usage": [
                *(throttled(n, 100.0, 100.0) for n in range(4)),
                *(limited(n, 9.0, 400.0, principal="User:bob") for n in range(4)),
            ],
            "config_changes": [
                {
                    **{"event_time": at(-90_000), "run_id": "r", "number": 1, "step": "done"},
                    **{"entity_type": "user", "entity_name": "bob", "operation": "SET"},
                    **{"config_key": "producer_byte_rate", "config_value": "400"},
                    "direction": "raise",
                }
            ],
        },
        {"alice": "raise_over_budget", "bob": None},
    ),
    "request time is not planned from the request log": (
        {
            "settings": [CAPACITY],
            "quota_usage": [
                *(used(n, 9.0, quota_type="request_percentage") for n in range(4)),
                *(
                    limited(n, 9.0, 90.0, quota_type="request_percentage", principal="User:bob")
                    for n in range(4)
                ),
            ],
        },
        {"alice": "usage_estimated"},
    ),
    "nor are bytes of a user with share consumers": (
        {
            "settings": [CAPACITY],
            "quota_usage": [
                *(
                    throttled(n, 99.0, 100.0, quota_type="consumer_byte_rate", share_requests=1)
                    for n in range(4)
                ),
                *(
                    used(n, 99.0, quota_type="consumer_byte_rate", principal="User:bob")
                    for n in range(4)
                ),
                used(
                    9, 0.0, quota_type="consumer_byte_rate", principal="User:bob", share_requests=1
                ),
            ],
        },
        {"alice": "usage_estimated"},
    ),
}


@pytest.fixture(scope="module")
def budgeted() -> dict[str, list[Row]]:
    """The proposals of each case of BUDGETS."""
    everybody = setting("quotas.advised_users", "*")
    cases = {
        case: {**content, "settings": [everybody, *content.get("settings", [])]}
        for case, (content, _) in BUDGETS.items()
    }
    return by_case(cases, "SELECT * FROM quota_proposals")


@pytest.mark.parametrize("case", BUDGETS)
def test_raises_stay_within_capacity_and_budget(budgeted: dict[str, list[Row]], case: str) -> None:
    actual = {row["entity_name"]: row["blocked_reason"] for row in budgeted[case]}
    assert actual == BUDGETS[case][1]
