"""Views of groups: who is in one, how fast it commits, when it rebalances, Streams applications."""

import pytest

from quotaflow.pipelines.results.declared import result_of

from ...pipelines.results.groups import golden_groups
from ...rows import INSTANCE, Row, at, delta, gauge
from ...rule_rows import compute
from .group_rows import APPLICATION, happened, member, shared
from .memory_tables import MemoryTables
from .view_tables import Picked, Tables, assert_outcomes, assert_shown, in_table, picked, view


@pytest.fixture(scope="module")
def captured() -> MemoryTables:
    """Tables of the captured groups."""
    tables, requests = MemoryTables(), golden_groups.requests()
    for name in ("group_members", "group_commits", "group_member_events"):
        tables.put(name, compute(result_of(name), requests=requests))
    return tables


def test_who_is_in_a_group_and_what_it_reads(captured: MemoryTables) -> None:
    columns = ("client_id", "state", "rack_id", "subscribed_topics", "joins", "heartbeats")
    rows = captured.rows("SELECT * FROM group_membership WHERE group_id = 'rdk-classic'")
    assert sorted(picked(rows, *columns)) == [
        ("rdk-a", "left", "az-b", ["orders", "returns"], 7, 42),
        ("rdk-b", "left", None, ["orders"], 3, 16),
        ("rdk-c", "silent", None, ["orders"], 2, 7),
    ]


def test_streams_applications_of_both_protocols(captured: MemoryTables) -> None:
    rows = captured.rows("SELECT * FROM streams_applications ORDER BY application_id")
    columns = ("application_id", "group_type", "processes", "threads", "assigned_partitions")
    assert picked(rows, *columns, "subscribed_topics", "rebalances", "instances") == [
        ("shop-classic", "classic", 1, 2, 3, ["orders"], 1, None),
        # It left with both its threads.
        ("shop-streams", "streams", 0, 0, None, ["orders"], 2, None),
    ]


def test_what_an_application_reports_of_itself() -> None:
    state, threads = "stream.client.state", "stream.alive.stream.threads"
    other = INSTANCE | {"client_instance_id": "i2"}
    tables = {
        "group_members": [member(300, "m1", group_id=APPLICATION, group_type="streams")],
        "client_metrics": [
            gauge(100, state, 1.0, application_id=APPLICATION),
            gauge(290, state, 2.0, application_id=APPLICATION),
            gauge(290, threads, 3.0),
            gauge(290, state, 6.0, **other, application_id=APPLICATION),
            gauge(290, threads, 0.0, **other),
            gauge(-4_000, state, 2.0, client_instance_id="old", application_id=APPLICATION),
        ],
    }
    (row,) = view("streams_applications", tables)
    assert picked([row], "instances", "instances_running", "alive_threads") == [(2, 1, 3.0)]


STATES: dict[tuple[str], dict[str, list[Row]]] = {
    ("active",): {
        "a member that works": [happened(1, "m1", "joined", 1)],
        "a member that left and came back": [
            happened(290, "m1", "left", None),
            happened(295, "m1", "rejoined", 2),
        ],
        "a member whose request to leave failed": [
            happened(290, "m1", "left", None, error_code=25)
        ],
    },
    ("left",): {"a member that left": [happened(290, "m1", "left", None)]},
    ("removed",): {
        "a member that the broker removed": [
            happened(1, "m1", "synced", 1),
            happened(290, "m1", "expired_notice", 1),
        ]
    },
}


def test_states_of_members() -> None:
    joining = {"joins": 1, "heartbeats": 0, "commits": 0, "group_epoch": None}
    outcomes = in_table("group_member_events", STATES, group_members=[member(300, "m1")])
    outcomes["silent",] = {"silent": {"group_members": [member(5, "m1"), member(300, "m2")]}}
    outcomes["joining",] = {"no answer let it in": {"group_members": [member(5, "m1", **joining)]}}
    assert_outcomes(outcomes, "group_membership WHERE member_id = 'm1'", "state")


BYTES = "consumer.share.fetch.manager.bytes.consumed.total"
HEALTH: dict[str, tuple[list[Row], str]] = {
    "throttled": (
        [shared(5, None, throttled_requests=1), shared(5, 0, lock_timeouts=1)],
        "throttled",
    ),
    "its locks run out": ([shared(5, 0, lock_timeouts=1, errors=1)], "timing_out"),
    "its acknowledgements are late": ([shared(5, 0, acknowledge_errors=1)], "refused"),
    "its requests fail": ([shared(5, None, errors=1)], "failing"),
    "it refuses": ([shared(5, 0, rejected_records=1, released_records=1)], "rejecting"),
    "it gives back": ([shared(5, 0, released_records=1)], "releasing"),
    "it gets what others had": ([shared(5, 0, redelivered_records=1)], "redelivered"),
    "nothing comes": ([shared(5, None)], "idle"),
    "all is well": ([shared(5, None), shared(5, 0)], "healthy"),
}


def test_a_member_of_a_share_group_is_in_one_state() -> None:
    cases: dict[str, tuple[Tables, Picked]] = {
        case: ({"share_fetches": rows}, [(state,)]) for case, (rows, state) in HEALTH.items()
    }
    assert_shown(cases, "share_group_health", "state")


def test_bytes_of_a_share_consumer_are_those_that_it_pushes() -> None:
    client = {"client_id": "own"}
    instance = {**client, "client_instance_id": "i2"}
    pushed = [delta(50, 40, 300, BYTES), delta(50, 40, 700, BYTES, **instance)]
    pushed += [delta(50, 40, 700, BYTES, topic="orders", **instance), delta(3_700, 3_650, 9, BYTES)]
    members = [shared(5, 0), shared(65, 0, member_id="s2"), shared(5, 0, **client)]
    members += [shared(5, 0, client_id="silent")]
    rows = view("share_group_health", {"share_fetches": members, "client_metrics": pushed})
    names = ("member_id", "bytes_consumed", "bytes_source", "bytes_unknown_reason")
    assert {row["client_id"] + row["member_id"]: picked([row], *names[1:])[0] for row in rows} == {
        "owns1": (700, "telemetry", None),
        "silents1": (None, None, "not_pushed"),
        "orderss1": (None, None, "shared_client_id"),
        "orderss2": (None, None, "shared_client_id"),
    }


def test_counts_of_a_member_are_summed_by_hour() -> None:
    rows = [
        shared(5, None, max_throttle_time_ms=5, quota_bytes=200_000),
        shared(65, None, max_throttle_time_ms=7, quota_bytes=100_000, errors=1, error_code=122),
        shared(5, 0, redelivered_records=20, acknowledge_errors=1, error_code=121),
        shared(65, 0, topic_id="t9"),
        shared(3_605, 0),
    ]
    hours = view("share_group_health ORDER BY hour", {"share_fetches": rows})
    names = ("fetches", "acquired_records", "redelivered_share", "error_code", "quota_bytes")
    names += ("max_throttle_time_ms", "partitions", "last_minute")
    assert picked(hours, *names) == [
        (18, 160, 0.125, 122, 100_000, 7, 2, at(60)),
        (0, 80, 0.0, None, None, None, 1, at(3_600)),
    ]
