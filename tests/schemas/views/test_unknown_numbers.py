"""Unknown in, unknown out: no sum, least or greatest of a view takes a null for a number."""

from ...rows import Row, active, config, push
from .test_reassignments import NAMES, REQUESTED, falling
from .test_subscriptions import live, opened
from .view_tables import Picked, Tables, assert_outcomes, assert_shown, in_table

FOLLOWS = {"leader_id": 1, "follower_id": 2}


def test_a_safe_expiration_is_known_if_a_pause_is() -> None:
    once, configs = [active(0, 1), active(100, 2)], [config(0, "metrics", "a.")]
    again = [*once, active(100, 1)]
    cases: dict[str, tuple[Tables, Picked]] = {
        "once": ({"active_producers": once, "configs": configs}, [(None, None)]),
        "again": ({"active_producers": again, "configs": configs}, [(100_000, 21_600_000)]),
    }
    assert_shown(cases, "producer_id_heap", "longest_pause_ms", "least_expiration_ms")


def test_the_size_of_a_subscription_is_known_if_that_of_each_client_is() -> None:
    sized = {client: push(1, client_instance_id=client, wire_bytes=200) for client in "ab"}
    rates: dict[tuple[float | None], dict[str, list[Row]]] = {
        (40.0,): {"both": [sized["a"], sized["b"] | {"payload_sha256": "b"}]},
        (None,): {
            "one of two": [sized["a"]],
            "by the receiver alone": [sized["a"], sized["b"] | {"route": "receiver"}],
        },
    }
    opening = {
        "metric_alert_events": [opened("a"), opened("b")],
        "telemetry_subscriptions": [live("a"), live("b")],
    }
    outcomes = in_table("telemetry_pushes", rates, **opening)
    sizes = "SELECT DISTINCT cluster_id, evidence[5].value AS size FROM subscription_proposals"
    assert_outcomes(outcomes, f"({sizes})", "size")


def test_a_pace_is_known_from_two_fetches_on() -> None:
    paces: dict[tuple[float | None, ...], dict[str, list[Row]]] = {
        (None, None, None): {"one": falling(1, 10_000, 1_000)},
        (10_000.0, 0.0, 90.0): {"two": falling(2, 10_000, 1_000)},
    }
    outcomes = in_table("replica_lag", paces, topics=NAMES, reassignment_changes=REQUESTED)
    names = ("bytes_per_s", "written_bytes_per_s", "eta_s")
    assert_outcomes(outcomes, "reassignments WHERE replica_id = 3", *names)
