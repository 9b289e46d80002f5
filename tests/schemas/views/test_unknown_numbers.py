"""Unknown in, unknown out: no sum, least or greatest of a view takes a null for a number."""

from ...rows import Row, active, config, push, replicated
from .test_reassignments import NAMES, REQUESTED, falling
from .test_subscriptions import live, opened
from .view_tables import by_case, picked

FOLLOWS = {"leader_id": 1, "follower_id": 2}


def lagging(partition: int, lag: int | None, second: float = 0) -> Row:
    return replicated(second, **FOLLOWS, partition=partition, offset_lag=lag, behind_fetches=1)


LAGS: dict[str, tuple[list[Row], int | None]] = {
    "all are known": ([lagging(0, 5), lagging(1, 7), lagging(0, 3, 60)], 12),
    "one of a minute is not known": ([lagging(0, 5), lagging(1, None)], None),
    "one minute is not known": ([lagging(0, 5), lagging(0, None, 60)], None),
}


def test_a_peak_of_lags_is_known_if_each_lag_is() -> None:
    cases = {case: {"replication_traffic": given} for case, (given, _) in LAGS.items()}
    peaks = by_case(cases, "SELECT * FROM replication_by_broker_pair")
    assert {case: [row["peak_offset_lag"] for row in peaks[case]] for case in LAGS} == {
        case: [peak] for case, (_, peak) in LAGS.items()
    }


def test_a_safe_expiration_is_known_if_a_pause_is() -> None:
    once = [active(0, 1), active(100, 2)]
    cases = {
        case: {"active_producers": given, "configs": [config(0, "metrics", "a.")]}
        for case, given in {"once": once, "again": [*once, active(100, 1)]}.items()
    }
    heaps = by_case(cases, "SELECT * FROM producer_id_heap")
    shown = {
        case: (row["longest_pause_ms"], row["least_expiration_ms"])
        for case, (row,) in heaps.items()
    }
    assert shown == {"once": (None, None), "again": (100_000, 21_600_000)}


def test_the_size_of_a_subscription_is_known_if_that_of_each_client_is() -> None:
    sized = {client: push(1, client_instance_id=client, wire_bytes=200) for client in "ab"}
    cases = {
        "both": [sized["a"], sized["b"] | {"payload_sha256": "b"}],
        "one of two": [sized["a"]],
        "by the receiver alone": [sized["a"], sized["b"] | {"route": "receiver"}],
    }
    opening = {
        "metric_alert_events": [opened("a"), opened("b")],
        "telemetry_subscriptions": [live("a"), live("b")],
    }
    contents = {case: opening | {"telemetry_pushes": pushes} for case, pushes in cases.items()}
    sizes = by_case(contents, "SELECT * FROM subscription_proposals")
    assert {case: [row["wire_bytes_per_s"] for row in rows] for case, rows in sizes.items()} == {
        "both": [40.0],
        "one of two": [None],
        "by the receiver alone": [None],
    }


def test_a_pace_is_known_from_two_fetches_on() -> None:
    cases = {
        str(fetches): {
            "topics": NAMES,
            "reassignment_changes": REQUESTED,
            "replica_lag": falling(fetches, 10_000, 1_000),
        }
        for fetches in (1, 2)
    }
    sql = "SELECT * FROM reassignments WHERE replica_id = 3"
    moves = by_case(cases, sql)
    names = ("bytes_per_s", "written_bytes_per_s", "eta_s")
    assert {case: picked(rows, *names) for case, rows in moves.items()} == {
        "1": [(None, None, None)],
        "2": [(10_000.0, 0.0, 90.0)],
    }
