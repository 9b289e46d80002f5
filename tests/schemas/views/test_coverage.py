"""Coverage of client instances from their contacts: what was asked, what came, how it ended."""

from collections.abc import Sequence
from typing import Any

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ... import rows as tables
from ...cases import cases
from ...delta_tables import Fill
from ...rows import INSTANCE, at, row
from .view_tables import rows

DAY_S = 86_400


def push(second: float, **others: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("compression", "wire_bytes", "decoded_bytes"))
    return tables.push(second, **nothing | others)


def rejected(second: float, error_code: int, **others: Any) -> dict[str, Any]:
    return push(second, accepted=False, error_code=error_code, **others)


def requested(second: float, interval_s: int = 10, **others: Any) -> dict[str, Any]:
    answer = {"error_code": 0, "push_interval_ms": interval_s * 1_000, "requested_metrics": ["*"]}
    return row("telemetry_subscriptions", second, INSTANCE | answer | others)


def another(second: float) -> dict[str, Any]:
    """Another client's contact: time goes on."""
    return requested(second, client_instance_id="other")


def requested_nothing(second: float) -> dict[str, Any]:
    """No subscription matches the client: it is to ask again in five minutes, and not to push."""
    return requested(second, interval_s=300, requested_metrics=[])


def answered(second: float, interval_s: int) -> dict[str, Any]:
    """A push as the receiver tells it, with the interval the broker knew then."""
    interval_ms = interval_s * 1_000
    return push(second, route="receiver", error_code=None, push_interval_ms=interval_ms)


def removed(before_day: int, **others: Any) -> dict[str, Any]:
    """What upkeep tells of rows past their retention."""
    batch = {"job": "upkeep", "query_id": "upkeep c1", "batch_id": 1, "row_count": 10}
    count = {"target": "telemetry_pushes", "outcome": "removed", "reason": "past_retention"}
    return row("pipeline_progress", before_day * DAY_S, batch | count | others)


@pytest.fixture
def covered(warehouse: Warehouse, fill: Fill) -> Any:
    def covered_rows(
        pushes: list[dict[str, Any]],
        answers: list[dict[str, Any]],
        removals: Sequence[dict[str, Any]] = (),
    ) -> list[dict[str, Any]]:
        fill("telemetry_pushes", pushes)
        fill("telemetry_subscriptions", answers)
        fill("pipeline_progress", [*removals])
        sql = "SELECT * FROM client_coverage WHERE client_instance_id = 'i1'"
        return rows(warehouse, sql)

    return covered_rows


@cases(
    ("pushes", "answers", "expected"),
    (
        "each push a little late",
        [push(10), push(20.4), push(31)],
        [requested(0)],
        {"state": "active", "accepted_pushes": 3, "missing_pushes": 0, "missing_share": 0.0},
    ),
    (
        "two pushes that never came",
        [push(10), push(40)],
        [requested(0)],
        {"expected_pushes": 4, "missing_pushes": 2, "missing_share": 0.5},
    ),
    (
        "silent since",
        [push(10)],
        [requested(0), another(40)],
        {"state": "vanished", "expected_pushes": 4, "missing_pushes": 3},
    ),
    (
        "took its leave",
        [push(10), push(12, terminating=True)],
        [requested(0), another(500)],
        {"state": "terminated", "accepted_pushes": 2, "missing_pushes": 0},
    ),
    (
        "silent before it took its leave",
        [push(10), push(45, terminating=True)],
        [requested(0), another(500)],
        {"state": "terminated", "accepted_pushes": 2, "missing_pushes": 3},
    ),
    (
        "told to stop",
        [push(10), rejected(20, 87)],
        [requested(0), another(500)],
        {"state": "cut_off", "rejected_pushes": 1, "missing_pushes": 0},
    ),
    (
        "went on all the same",
        [push(10), rejected(20, 87), push(30)],
        [requested(0), another(40)],
        {"state": "active", "rejected_pushes": 1, "missing_pushes": 1},
    ),
    (
        "only throttled so far",
        [rejected(20, 89)],
        [requested(0), another(30)],
        {"state": "active", "expected_pushes": 0, "missing_share": None},
    ),
    (
        "asked and never heard of again",
        [],
        [requested(0), another(500)],
        {"state": "never_pushed", "subscription_requests": 1, "missing_pushes": 0},
    ),
    (
        "another interval on the way",
        [push(10), push(20), push(50), push(80)],
        [requested(0), requested(21, interval_s=30), another(90)],
        {"state": "active", "push_interval_ms": 30_000, "missing_pushes": 0},
    ),
    (
        "a shorter interval: only the push that was rejected is missing",
        [push(300), push(600), rejected(900, 117), push(910), push(920), push(930)],
        [requested(0, interval_s=300), requested(900)],
        {"push_interval_ms": 10_000, "expected_pushes": 6, "missing_pushes": 1},
    ),
    (
        "silent before a longer interval",
        [push(10), push(511)],
        [requested(0), requested(211, interval_s=300)],
        {"push_interval_ms": 300_000, "missing_pushes": 20},
    ),
    (
        "silent before a longer interval, and took its leave in it",
        [push(10), push(45, terminating=True)],
        [requested(0), requested(40, interval_s=300)],
        {"state": "terminated", "missing_pushes": 3},
    ),
    (
        "asked for nothing for an hour",
        [push(80), push(90), rejected(100, 117), push(3710), push(3720)],
        [requested(0), *(requested_nothing(s) for s in range(100, 3700, 300)), requested(3700)],
        {"state": "active", "accepted_pushes": 4, "missing_pushes": 1},
    ),
    (
        "asked for nothing, and silent since",
        [push(10)],
        [requested(0), requested_nothing(20), another(7200)],
        {"state": "vanished", "missing_pushes": 0},
    ),
    (
        "silent for an hour until it asked once more, and since then",
        [push(10)],
        [requested(0), requested(3600), another(7200)],
        {"state": "vanished", "missing_pushes": 359 + 6},
    ),
    (
        "what a client owes that is silent ends after a minute",
        [push(1)],
        [requested(0, interval_s=1), another(3600)],
        {"state": "vanished", "expected_pushes": 61, "missing_pushes": 60},
    ),
    (
        "or after three intervals, where these are longer",
        [push(300)],
        [requested(0, interval_s=300), another(7200)],
        {"state": "vanished", "expected_pushes": 4, "missing_pushes": 3},
    ),
    (
        "asks and asks, and pushes no more",
        [push(10)],
        [requested(s) for s in (0, *range(11, 71))],
        {"state": "active", "missing_pushes": 6},
    ),
    (
        "a push by two ways",
        [push(10), push(10.1, route="receiver", payload_sha256="sha10"), push(20)],
        [requested(0)],
        {"accepted_pushes": 2, "missing_pushes": 0},
    ),
    (
        "two empty pushes",
        [push(10, payload_sha256="e"), push(20, payload_sha256="e")],
        [requested(0)],
        {"accepted_pushes": 2, "missing_pushes": 0},
    ),
    (
        "by the receiver alone",
        [answered(10, 10), answered(20, 10), answered(40, 10)],
        [],
        {"accepted_pushes": 3, "missing_pushes": 1, "push_interval_ms": 10_000},
    ),
    (
        "by the receiver alone, which does not tell when another interval began",
        [
            answered(300, 300),
            answered(600, 300),
            answered(910, 10),
            answered(920, 10),
            answered(1220, 300),
        ],
        [],
        {"accepted_pushes": 5, "missing_pushes": 0, "push_interval_ms": 300_000},
    ),
    (
        "several brokers",
        [push(10), push(20, broker_id=3)],
        [requested(0, broker_id=2)],
        {"broker_ids": [1, 2, 3], "first_push": at(10), "last_push": at(20)},
    ),
    (
        "nobody knows the interval",
        [push(10), push(20)],
        [],
        {"state": "active", "push_interval_ms": None, "missing_pushes": 0},
    ),
)
def test_coverage(
    covered: Any,
    pushes: list[dict[str, Any]],
    answers: list[dict[str, Any]],
    expected: dict[str, Any],
) -> None:
    (row,) = covered(pushes, answers)
    assert {name: row[name] for name in expected} == expected


@cases(
    ("pushes", "days", "removals", "states"),
    ("if it pushed, all of that is gone", [], [-6], [removed(-4)], []),
    ("the last removal counts", [], [-6], [removed(-4), removed(-5)], []),
    ("its pushes would be there", [], [-3], [removed(-4)], ["never_pushed"]),
    ("its first days may be gone", [], [-6, -3], [removed(-4)], ["vanished"]),
    (
        "its last push is there",
        [push(-3.9 * DAY_S, terminating=True)],
        [-6],
        [removed(-4)],
        ["terminated"],
    ),
    (
        "another cluster's are gone, and points",
        [],
        [-6],
        [removed(-4, cluster_id="c2"), removed(-4, target="client_metrics")],
        ["never_pushed"],
    ),
    ("not there in the last week", [push(-7.1 * DAY_S)], [-8], [], []),
    ("there in the last week", [], [-6.9], [], ["never_pushed"]),
)
def test_nothing_is_said_of_pushes_that_upkeep_may_have_removed(
    covered: Any,
    pushes: list[dict[str, Any]],
    days: list[float],
    removals: list[dict[str, Any]],
    states: list[str],
) -> None:
    rows = covered(pushes, [*(requested(day * DAY_S) for day in days), another(0)], removals)
    assert [row["state"] for row in rows] == states


def test_batches_of_a_collector_are_no_client(warehouse: Warehouse, fill: Fill) -> None:
    fill("telemetry_pushes", [push(1, client_instance_id=None, route="otlp")])
    fill("telemetry_subscriptions", [])
    fill("pipeline_progress", [])
    assert rows(warehouse, "SELECT * FROM client_coverage") == []


def point(second: float, start: float, **others: Any) -> dict[str, Any]:
    metric = {"series_id": 1, "metric": "m", "kind": "sum", "temporality": "delta", "value": 1.0}
    given = metric | {"accepted": True, "payload_sha256": f"sha{second}"} | others
    return row("client_metrics", second, given, client_instance_id="i1", start_time=at(start))


@cases(
    ("accepted_range", "recovered"),
    ("the next point begins where the lost one ended", (30, 20), 1),
    ("the next point holds the lost one too", (30, 10), 0),
)
def test_a_rejected_delta_is_recovered_where_no_accepted_one_holds_it(
    warehouse: Warehouse, fill: Fill, accepted_range: tuple[float, float], recovered: int
) -> None:
    fill("telemetry_pushes", [push(10), rejected(20, 89), push(30)])
    second, start = accepted_range
    fill("client_metrics", [point(10, 0), point(20, 10, accepted=False), point(second, start)])
    (row,) = rows(warehouse, "SELECT * FROM telemetry_rejections")
    assert (row["error_code"], row["pushes"], row["delta_points"]) == (89, 1, 1)
    assert row["error_name"] == "THROTTLING_QUOTA_EXCEEDED"
    assert row["recovered_points"] == recovered


def test_points_of_a_payload_rejected_twice_count_once(warehouse: Warehouse, fill: Fill) -> None:
    fill("telemetry_pushes", [rejected(20 + n, 89, payload_sha256="sha20") for n in (0, 1)])
    fill("client_metrics", [point(20, 10, accepted=False)])
    (row,) = rows(warehouse, "SELECT * FROM telemetry_rejections")
    assert (row["pushes"], row["delta_points"], row["recovered_points"]) == (2, 1, 1)


def test_of_pushes_in_one_millisecond_the_accepted_one_is_the_first(
    warehouse: Warehouse, fill: Fill
) -> None:
    fill("telemetry_pushes", [rejected(10, 89, payload_sha256="b"), push(10)])
    fill("telemetry_subscriptions", [requested(0)])
    sql = "SELECT error_code, previous_push FROM telemetry_contacts WHERE is_push = 1 ORDER BY 1"
    contacts = rows(warehouse, sql)
    assert [tuple(row.values()) for row in contacts] == [(0, None), (89, at(10))]
