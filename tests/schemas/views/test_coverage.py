"""Coverage of client instances from their contacts: what was asked, what came, how it ended."""

from collections.abc import Sequence
from typing import Any

from ... import case_tables
from ... import rows as tables
from ...cases import cases
from ...rows import INSTANCE, Row, at, row
from .view_tables import picked, view

DAY_S = 86_400


def push(second: float, **others: Any) -> Row:
    nothing = dict.fromkeys(("compression", "wire_bytes", "decoded_bytes"))
    return tables.push(second, **nothing | others)


def pushes(*seconds: float) -> list[Row]:
    return [push(second) for second in seconds]


def left(second: float) -> Row:
    """Its last push, by which it takes its leave."""
    return push(second, terminating=True)


def rejected(second: float, error_code: int, **others: Any) -> Row:
    return push(second, accepted=False, error_code=error_code, **others)


def requested(second: float, interval_s: int = 10, **others: Any) -> Row:
    answer = {"error_code": 0, "push_interval_ms": interval_s * 1_000, "requested_metrics": ["*"]}
    return row("telemetry_subscriptions", second, INSTANCE | answer | others)


def another(second: float) -> Row:
    """Another client's contact: time goes on."""
    return requested(second, client_instance_id="other")


def requested_nothing(second: float) -> Row:
    """No subscription matches the client: it is to ask again in five minutes, and not to push."""
    return requested(second, interval_s=300, requested_metrics=[])


def answered(second: float, interval_s: int) -> Row:
    """A push as the receiver tells it, with the interval the broker knew then."""
    interval_ms = interval_s * 1_000
    return push(second, route="receiver", error_code=None, push_interval_ms=interval_ms)


def removed(before_day: int, **others: Any) -> Row:
    """What upkeep tells of rows past their retention."""
    batch = {"job": "upkeep", "query_id": "upkeep c1", "batch_id": 1, "row_count": 10}
    count = {"target": "telemetry_pushes", "outcome": "removed", "reason": "past_retention"}
    return row("pipeline_progress", before_day * DAY_S, batch | count | others)


def covered(contacts: list[Row], removals: Sequence[Row] = ()) -> list[Row]:
    """The coverage of i1 by pushes and by requests for a subscription."""
    content = {
        "telemetry_pushes": [row for row in contacts if "payload_sha256" in row],
        "telemetry_subscriptions": [row for row in contacts if "payload_sha256" not in row],
        "pipeline_progress": [*removals],
    }
    return view("client_coverage WHERE client_instance_id = 'i1'", content)


@cases(
    ("contacts", "expected"),
    *case_tables.rows(
        __file__, "coverage", requested, pushes, another, push, left, rejected, requested_nothing
    ),
    (
        "each push was too large",
        [requested(0), *(rejected(n * 10, 118) for n in range(1, 20))],
        ("refused", 10, 0, 19, 19, 19),
    ),
    (
        "throttled each time",
        [requested(0), *(rejected(n * 10, 89) for n in range(1, 20))],
        ("refused", 10, 0, 19, 19, 19),
    ),
    (
        "refused since the first one",
        [requested(0), push(10), *(rejected(n * 10, 118) for n in range(2, 6))],
        ("refused", 10, 1, 4, 5, 4),
    ),
    (
        "asked for nothing for an hour",
        [
            requested(0),
            *(requested_nothing(s) for s in range(100, 3700, 300)),
            requested(3700),
            *pushes(80, 90),
            rejected(100, 117),
            *pushes(3710, 3720),
        ],
        ("active", 10, 4, 1, 5, 1),
    ),
    (
        "asks and asks, and pushes no more",
        [*(requested(s) for s in (0, *range(11, 71))), push(10)],
        ("active", 10, 1, 0, 7, 6),
    ),
    ("by the receiver alone", [answered(s, 10) for s in (10, 20, 40)], ("active", 10, 3, 0, 4, 1)),
    (
        "by the receiver alone, which does not tell when another interval began",
        [*(answered(s, 300) for s in (300, 600, 1220)), answered(910, 10), answered(920, 10)],
        ("active", 300, 5, 0, 5, 0),
    ),
)
def test_coverage(contacts: list[Row], expected: tuple[Any, ...]) -> None:
    (row,) = covered(contacts)
    state, interval_s, *counts = expected
    assert (row["state"], row["push_interval_ms"]) == (state, interval_s and interval_s * 1_000)
    kinds = ("accepted_pushes", "rejected_pushes", "expected_pushes", "missing_pushes")
    assert [row[kind] for kind in kinds] == counts


@cases(
    ("contacts", "share"),
    ("none is missing", [requested(0), *pushes(10, 20.4, 31)], 0.0),
    ("half are", [requested(0), *pushes(10, 40)], 0.5),
    ("none is due", [requested(0), another(30), rejected(20, 89)], None),
)
def test_the_share_that_is_missing(contacts: list[Row], share: float | None) -> None:
    assert picked(covered(contacts), "missing_share") == [(share,)]


def test_contacts_of_a_client_at_several_brokers() -> None:
    contacts = [requested(0, broker_id=2), push(10), push(20, broker_id=3)]
    names = ("broker_ids", "first_push", "last_push", "subscription_requests")
    assert picked(covered(contacts), *names) == [([1, 2, 3], at(10), at(20), 1)]


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
    pushes: list[Row], days: list[float], removals: list[Row], states: list[str]
) -> None:
    rows = covered([*(requested(day * DAY_S) for day in days), *pushes, another(0)], removals)
    assert [row["state"] for row in rows] == states


def test_batches_of_a_collector_are_no_client() -> None:
    content = {"telemetry_pushes": [push(1, client_instance_id=None, route="otlp")]}
    assert view("client_coverage", content) == []


def point(second: float, start: float, **others: Any) -> Row:
    metric = {"series_id": 1, "metric": "m", "kind": "sum", "temporality": "delta", "value": 1.0}
    given = metric | {"accepted": True, "payload_sha256": f"sha{second}"} | others
    return row("client_metrics", second, given, client_instance_id="i1", start_time=at(start))


@cases(
    ("accepted_range", "recovered"),
    ("the next point begins where the lost one ended", (30, 20), 1),
    ("the next point holds the lost one too", (30, 10), 0),
)
def test_a_rejected_delta_is_recovered_where_no_accepted_one_holds_it(
    accepted_range: tuple[float, float], recovered: int
) -> None:
    second, start = accepted_range
    content = {
        "telemetry_pushes": [push(10), rejected(20, 89), push(30)],
        "client_metrics": [point(10, 0), point(20, 10, accepted=False), point(second, start)],
    }
    (row,) = view("telemetry_rejections", content)
    assert (row["error_code"], row["pushes"], row["delta_points"]) == (89, 1, 1)
    assert row["error_name"] == "THROTTLING_QUOTA_EXCEEDED"
    assert row["recovered_points"] == recovered


def test_points_of_a_payload_rejected_twice_count_once() -> None:
    content = {
        "telemetry_pushes": [rejected(20 + n, 89, payload_sha256="sha20") for n in (0, 1)],
        "client_metrics": [point(20, 10, accepted=False)],
    }
    (row,) = view("telemetry_rejections", content)
    assert (row["pushes"], row["delta_points"], row["recovered_points"]) == (2, 1, 1)


def test_refused_pushes_of_a_program_are_one_row() -> None:
    content = {
        "telemetry_pushes": [
            rejected(n, 118, client_instance_id=f"i{n % 3}", client_id=f"orders-{n % 2}")
            for n in range(6)
        ]
    }
    rows = view("telemetry_rejections", content)
    assert picked(rows, "client_id", "client_ids", "client_instances", "pushes") == [
        ("orders-*", 2, 3, 6)
    ]
    (first, *_) = view("client_coverage", content)
    assert first["client_pattern"] == "orders-*"


@cases(
    ("came", "unique"),
    ("by one route", ["receiver"], ["receiver"]),
    ("by the log too, which has the answer", ["receiver", "request_log"], ["request_log"]),
    ("by three routes", ["receiver", "otlp", "other"], ["other"]),
    (
        "twice, each time by both",
        ["receiver", "request_log", "request_log", "receiver"],
        ["request_log", "request_log"],
    ),
    (
        "twice, once by both",
        ["receiver", "request_log", "receiver"],
        ["receiver", "request_log"],
    ),
)
def test_a_payload_counts_once_however_it_came(came: list[str], unique: list[str]) -> None:
    pushes = [
        push(second, route=route, payload_sha256=sha, push_interval_ms=interval_ms)
        for sha, interval_ms in (("a", 1_000), (None, 2_000))
        for second, route in enumerate(came)
    ]
    got = view("unique_pushes", {"telemetry_pushes": pushes})
    for sha, interval_ms in (("a", 1_000), (None, 2_000)):
        of_payload = [row for row in got if row["payload_sha256"] == sha]
        assert sorted(row["route"] for row in of_payload) == unique
        assert {row["push_interval_ms"] for row in of_payload} == {interval_ms}


def test_of_pushes_in_one_millisecond_the_accepted_one_is_the_first() -> None:
    pushes = [rejected(10, 89, payload_sha256="b"), push(10)]
    content = {"telemetry_pushes": pushes, "telemetry_subscriptions": [requested(0)]}
    contacts = view("telemetry_contacts WHERE is_push = 1 ORDER BY error_code", content)
    assert picked(contacts, "error_code", "previous_push") == [(0, None), (89, at(10))]


def test_elapsed_intervals_do_not_end_where_engines_round_differently() -> None:
    answers = [requested(0, push_interval_ms=400)]
    content = {"telemetry_pushes": [push(1), push(3.059)], "telemetry_subscriptions": answers}
    contacts = view("telemetry_contacts ORDER BY event_time DESC LIMIT 1", content)
    assert picked(contacts, "elapsed_intervals") == [(5.1475,)]


def test_a_refused_client_has_the_error_and_the_size() -> None:
    (client,) = covered(
        [
            requested(0),
            rejected(10, 118, wire_bytes=1_100_000),
            rejected(20, 118, wire_bytes=1_300_000),
            rejected(30, 118, wire_bytes=1_200_000),
        ]
    )
    assert picked([client], "state", "refused_error_code", "refused_bytes") == [
        ("refused", 118, 1_300_000)
    ]
