"""Which rates of replication throttles a plan may ask for, and why not the others."""

from typing import Any

from quotaflow.pipelines.config import Conf, ReplicationSection
from quotaflow.pipelines.snapshots import settings

from ... import case_tables
from ...rows import Row, at, setting, throttled
from .rate_rows import CAPACITY, NOW, sent
from .view_tables import Tables, assert_outcomes, picked, signals, view

LEADER_RATE = "leader.replication.throttled.rate"
MANAGED = [CAPACITY, setting("replication.manage", "true")]
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}


def throttle_and_conf(throttle: Row, conf: list[Row]) -> Tables:
    return {"replication_throttles": [throttled(NOW, **throttle)], "settings": conf}


UNSET = {"rate": None, "rate_source": "unset"}
TOO_LITTLE = [setting("replication.capacity_bytes_per_s", 9e5), *MANAGED[1:]]
RATES: dict[tuple[Any, ...], dict[str, Tables]] = {
    **case_tables.table(
        __file__,
        "RATES",
        throttle_and_conf,
        MANAGED=MANAGED,
        UNSET=UNSET,
        CAPACITY=CAPACITY,
        TOO_LITTLE=TOO_LITTLE,
        NOW=NOW,
    ),
    (None, "2000000", 25, "capacity_unknown", True): {
        "nobody knows the capacity": throttle_and_conf({}, MANAGED[1:])
    },
}
UNKNOWN = {
    "not managed": throttle_and_conf({}, []),
    "of all brokers": throttle_and_conf({"rate_source": "dynamic_default"}, MANAGED[1:]),
    "nothing is moved": throttle_and_conf({"is_moving": False, "in_isr": False}, MANAGED[1:]),
}
JUST_SET: Row = {"rate_set_at": at(NOW - 300), "list_set_at": at(NOW - 300)}
NEAR_ENOUGH = JUST_SET | {"rate": 85e6}
STANDS: dict[tuple[Any, ...], dict[str, Tables]] = {
    (): {
        "nothing is moved or behind": throttle_and_conf(JUST_SET | IDLE, MANAGED),
        "no rate and no move": throttle_and_conf(JUST_SET | UNSET | {"is_moving": False}, MANAGED),
        "taken away in the minute in which the move ended": throttle_and_conf(
            JUST_SET | {"is_configured": False}, MANAGED
        ),
        "near enough, and not managed": throttle_and_conf(NEAR_ENOUGH, [CAPACITY]),
        "near enough, and of all brokers": throttle_and_conf(
            NEAR_ENOUGH | {"rate_source": "dynamic_default"}, MANAGED
        ),
    },
    ("85000000", "85000000", None): {
        "near enough, so that its lease goes on": throttle_and_conf(NEAR_ENOUGH, MANAGED)
    },
}
OF_BROKERS = "replication_proposals WHERE entity_type = 'broker'"


def test_which_rate_is_asked_for_and_what_goes_on_while_no_better_one_is_known() -> None:
    names = ("config_value", "prior_value", "priority", "blocked_reason", "renew_only")
    actual = assert_outcomes(RATES, OF_BROKERS, *names)
    shared = ("entity_type", "entity_name", "config_key", "lease_s", "evidence_key")
    for proposals in actual.values():
        key = ("broker", "1", LEADER_RATE, 3_600, "broker_id=1 side=leader")
        assert picked(proposals, *shared) == [key]
    assert_outcomes({(False,): UNKNOWN}, OF_BROKERS, "renew_only")


def test_a_rate_that_need_not_change_is_not_asked_for_or_as_it_stands() -> None:
    assert_outcomes(
        STANDS, "replication_proposals", "config_value", "prior_value", "blocked_reason"
    )


def test_what_a_broker_carried_so_far_is_no_capacity() -> None:
    content = {"replication_throttles": [throttled(NOW)], "rack_traffic": [sent(NOW, 9)]}
    (row,) = view("replication_proposals", content | {"settings": MANAGED[1:]})
    names = ("config_value", "blocked_reason", "reason_detail")
    assert picked([row], *names) == [(None, "capacity_unknown", None)]
    assert signals(row)["capacity_bytes_per_s"] is None


SLOW = [
    {"cluster_id": "c1", "api": "PRODUCE", "broker_id": 1, "event_time": at(NOW - 60 * n)}
    | {"total_time_ms": 2_000.0 if n < 2 else 10.0}
    for n in range(9)
    for _ in range(20)
]
SUFFERING = {
    "produce_p99_ms": 2_000.0,
    "usual_produce_p99_ms": 10.0,
    "fetch_p99_ms": None,
    "usual_fetch_p99_ms": None,
    "shrunk_partitions": 0,
}


def test_the_evidence_has_how_clients_suffer() -> None:
    content = throttle_and_conf({"rate": 8e6}, MANAGED) | {"requests": SLOW}
    (row,) = view("desired_configs", content)
    assert (row["config_value"], row["priority"]) == ("4000000", 5)
    assert picked([row], "reason_code", "reason_detail") == [("clients_degraded", "conf")]
    assert signals(row).items() >= (SUFFERING | {"capacity_bytes_per_s": 100e6}).items()
    assert row["offence"] == 2_000.0 / 10.0


def test_where_no_rate_helps_clients_both_is_said() -> None:
    content = throttle_and_conf({}, TOO_LITTLE) | {"requests": SLOW}
    (row,) = view("replication_proposals", content)
    assert (row["config_value"], row["priority"]) == (None, 5)
    assert picked([row], "reason_code", "blocked_reason") == [
        ("floor_exceeds_capacity_and_clients_degraded", "floor_exceeds_capacity")
    ]
    assert signals(row).items() >= (SUFFERING | {"capacity_bytes_per_s": 9e5}).items()


def test_a_rate_has_its_evidence_and_no_more() -> None:
    (row,) = view("replication_proposals", throttle_and_conf({}, [CAPACITY]))
    names = ("reason_code", "reason_detail", "subject")
    assert picked([row], *names) == [("step_bound", "conf", "User:admin")]
    assert signals(row) == dict.fromkeys(SUFFERING) | {
        "other_bytes_per_s": 0.0,
        "capacity_bytes_per_s": 100e6,
        "written_bytes_per_s": 0.0,
        "rate_bytes_per_s": 2e6,
    }


def test_without_a_snapshot_bounds_are_those_of_no_conf() -> None:
    replication = ReplicationSection(manage=True, lease_s=60, capacity_bytes_per_s=5e6)
    content: Tables = {"replication_throttles": [throttled(NOW)], "settings": []}
    actual = view("replication_policy", content)
    for second, conf in enumerate([Conf(), Conf(replication=replication)]):
        seen = {"cluster_id": "c1", "event_time": at(second), "is_removed": False}
        content["settings"] += [seen | row for row in settings.of_conf(conf)]
        actual += view("replication_policy", content)
    assert actual[0] == actual[1]
    names = ("is_managed", "lease_s", "capacity_bytes_per_s")
    assert picked(actual[1:], *names) == [(False, 3_600, None), (True, 60, 5e6)]
