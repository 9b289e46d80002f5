"""Why a group lags: causes by their evidence, two at once, what is explained away, and unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules import lag_cause
from quotaflow.udfs.rules.lag_cause import CAUSES, Cause, Evidence, causes

# A group with members that read, of which nothing explains the lag.
READS: dict[str, Any] = {
    "trend": "growing",
    "in_ratio": 1.0,
    "out_ratio": 0.8,
    "stalled_lag_share": 0.0,
    "unassigned_lag_share": 0.0,
    "reread_lag_share": 0.0,
    "beyond_end_partitions": 0,
    "partitions": 6,
    "hot_partition": 3,
    "hot_lag_share": 0.2,
    "hot_in_ratio": 1.1,
    "group_state": "Stable",
    "members": 2,
    "heartbeats": 200,
    "commits": 120,
    "recent_commits": 36,
    "fetches": 600,
    "consumed_bytes": 10_000_000,
    "recent_bytes": 3_000_000,
    "groups_of_client": 1,
    "fetches_per_s": 0.5,
    "throttle_time_share": 0.0,
    "limit_share": 0.1,
    "limited_by": "partition_max_bytes",
    "limit_bytes": 1_048_576,
    "broker_time_share": 0.01,
    "broker_id": 1,
    "broker_ms": 1.0,
    "other_brokers_ms": 1.0,
    "network_time_share": 0.01,
    "network_ms": 0.5,
    "cross_rack_share": 0.0,
    "poll_idle_ratio": 0.6,
    "time_between_polls_ms": 100.0,
    "last_poll_s": 0.1,
}
THROTTLE = {"throttle_time_share": 0.5, "throttled_by": "consumer_byte_rate", "quota": 1e6}
SMALL_LIMIT = {"limit_share": 0.95, "limit_bytes": 16_384, "fetches_per_s": 9.0}
FAR = {"network_time_share": 0.8, "network_ms": 80.0, "cross_rack_share": 1.0}
SLOW = {"poll_idle_ratio": 0.02, "time_between_polls_ms": 9_000.0}
STALLED = {"stalled_lag_share": 1.0, "commits": 0, "consumed_bytes": 0, "fetches": 0}
STALLED |= {"recent_commits": 0, "recent_bytes": 0}
BEFORE = {"commits": 60, "consumed_bytes": 5_000_000, "fetches": 300}
"""What a group did until minutes ago."""
EMPTY = {"unassigned_lag_share": 1.0, "group_state": "Empty", "members": 0} | STALLED
SKEW = {"hot_in_ratio": 8.0, "hot_lag_share": 0.97}
RATES = {"records_in_per_s": 100.0, "records_out_per_s": 200.0}
NO_TELEMETRY = dict.fromkeys(("poll_idle_ratio", "time_between_polls_ms", "last_poll_s"))

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing explains it": ({}, ["unknown"]),
    "a quota": (THROTTLE, ["throttled"]),
    "a throttle that is over in no time": ({"throttle_time_share": 0.04}, ["unknown"]),
    "a small limit": (SMALL_LIMIT, ["fetch_limited"]),
    "answers are full, and the application takes its time": (
        SMALL_LIMIT | SLOW,
        ["slow_processing"],
    ),
    "answers of Kafka's own limit are full": (
        SMALL_LIMIT | {"limit_bytes": 1_048_576},
        ["fetch_limited"],
    ),
    "answers are full and seldom, since each takes long on its way": (
        SMALL_LIMIT | FAR | {"fetches_per_s": 0.8},
        ["fetch_limited", "far_replica"],
    ),
    "answers are full, and seldom": (SMALL_LIMIT | {"fetches_per_s": 0.8}, ["unknown"]),
    "another rack": (FAR, ["far_replica"]),
    "a slow network within a rack": (FAR | {"cross_rack_share": 0.0}, ["unknown"]),
    "another rack that is as near": (FAR | {"network_ms": 1.0}, ["unknown"]),
    "offsets out of range": ({"out_of_range_answers": 50} | STALLED, ["out_of_range"]),
    "an offset past the end": ({"beyond_end_partitions": 1}, ["out_of_range"]),
    "it went back": ({"reread_lag_share": 0.9, "trend": "went_back"}, ["out_of_range"]),
    "members stop again and again": (
        {"rebalance_time_share": 0.4, "rebalances": 12},
        ["rebalancing"],
    ),
    "rebalances that stop nobody": ({"rebalances": 8}, ["rebalancing"]),
    "one rebalance": ({"rebalances": 1, "rebalance_time_share": 0.01}, ["unknown"]),
    "it does not poll, by telemetry": (STALLED | {"last_poll_s": 250.0}, ["not_polling"]),
    "it does not poll, by the reason of its client": (
        EMPTY | {"poll_timeouts": 1},
        ["not_polling", "no_members"],
    ),
    "a share group reads, and nothing of its time is spent at brokers": (
        NO_TELEMETRY | {"consumed_bytes": None, "recent_bytes": None, "acquired_records": 900},
        ["slow_processing"],
    ),
    "it polls seldom, and gets on": ({"last_poll_s": 120.0}, ["unknown"]),
    "it heartbeats and reads nothing: nobody knows if it polls": (
        STALLED | NO_TELEMETRY,
        ["not_polling"],
    ),
    "it polls and reads nothing": (STALLED, ["paused"]),
    "it polls, and reads nothing since minutes": (STALLED | BEFORE, ["paused"]),
    "it reads nothing since minutes, and nobody knows if it polls": (
        STALLED | BEFORE | NO_TELEMETRY,
        ["slow_processing"],
    ),
    "records take long": (SLOW, ["slow_processing"]),
    "nothing of its time is spent at brokers": (NO_TELEMETRY, ["slow_processing"]),
    "one partition gets most": (SKEW | SLOW, ["skewed_partitions"]),
    "one partition lags, and gets as much as others": (
        SKEW | SLOW | {"hot_in_ratio": 1.0},
        ["slow_processing"],
    ),
    "a topic of one partition": (SKEW | {"partitions": 1}, ["unknown"]),
    "a slow broker": (
        {"broker_time_share": 0.7, "broker_ms": 90.0, "other_brokers_ms": 2.0},
        ["slow_broker"],
    ),
    "many fetches that take no time": ({"broker_time_share": 0.7, "broker_ms": 0.7}, ["unknown"]),
    "more records than ever": (
        {"in_ratio": 4.0, "out_ratio": 1.1} | SLOW,
        ["producers_faster", "slow_processing"],
    ),
    "more records, and it reads fewer": ({"in_ratio": 4.0, "out_ratio": 0.2}, ["producers_faster"]),
    "it catches up with what it had read, as fast as it can": (
        SLOW | {"reread_lag_share": 0.9} | RATES,
        ["out_of_range"],
    ),
    "it went back, and is too slow for what comes": (
        SLOW | {"reread_lag_share": 0.9} | RATES | {"records_out_per_s": 50.0},
        ["out_of_range", "slow_processing"],
    ),
    "members stop, and would keep up otherwise": (
        SLOW
        | {"rebalance_time_share": 0.5, "poll_idle_ratio": 0.5}
        | RATES
        | {"records_out_per_s": 55.0},
        ["rebalancing"],
    ),
    "members stop, and are too slow in between": (
        SLOW
        | {"rebalance_time_share": 0.5, "poll_idle_ratio": 0.5}
        | RATES
        | {"records_out_per_s": 25.0},
        ["rebalancing", "slow_processing"],
    ),
    "nobody is there": (EMPTY, ["no_members"]),
    "nobody is there, and records come as never before": (
        EMPTY | {"in_ratio": 4.0, "out_ratio": None},
        ["no_members"],
    ),
    "nobody is there, and somebody commits": (
        EMPTY | {"commits": 5, "recent_commits": 2},
        ["unknown"],
    ),
    "nobody is there since minutes": (EMPTY | BEFORE, ["no_members"]),
    "members have other topics": (
        STALLED | {"unassigned_lag_share": 1.0, "last_poll_s": None},
        ["no_members"],
    ),
    "a quota and another rack": (THROTTLE | FAR, ["throttled", "far_replica"]),
    "another rack and a small limit": (FAR | SMALL_LIMIT, ["fetch_limited", "far_replica"]),
    "a quota and slow work": (THROTTLE | SLOW, ["throttled", "slow_processing"]),
    "nothing is known": (dict.fromkeys(READS), ["unknown"]),
}


@pytest.mark.parametrize("case", CASES)
def test_causes_of_a_case(case: str) -> None:
    changed, expected = CASES[case]
    assert [cause.name for cause in causes(Evidence(**READS | changed))] == expected


def test_a_cause_names_its_numbers_and_which_one_it_is() -> None:
    assert causes(Evidence(**READS | THROTTLE)) == [
        Cause("throttled", 0.95, ("throttle_time_share", "quota"), "consumer_byte_rate")
    ]


def test_what_is_not_known_is_no_evidence() -> None:
    (cause,) = causes(Evidence())
    assert cause == Cause("unknown", None, ())


def test_fetches_of_a_client_of_several_groups_prove_nothing() -> None:
    (cause, *_) = causes(Evidence(**READS | THROTTLE | {"groups_of_client": 2}))
    assert (cause.name, cause.confidence) == ("throttled", 0.85)


def test_who_did_not_poll_for_minutes_is_not_surely_slow() -> None:
    (cause,) = causes(Evidence(**READS | SLOW | {"last_poll_s": 500.0}))
    assert (cause.name, cause.confidence) == ("slow_processing", 0.47)


def test_without_telemetry_nothing_is_sure_of_the_application() -> None:
    for changed in (NO_TELEMETRY, NO_TELEMETRY | STALLED):
        (cause, *_) = causes(Evidence(**READS | changed))
        assert cause.confidence is not None
        assert cause.confidence < 0.9


_NUMBERS = {name for name, value in READS.items() if isinstance(value, float)} - {"trend"}


@given(
    st.fixed_dictionaries(
        {
            name: st.none() | st.floats(allow_infinity=True, allow_nan=True)
            for name in sorted(_NUMBERS)
        }
    )
)
def test_any_numbers_give_ranked_causes(numbers: dict[str, float | None]) -> None:
    ranked = causes(Evidence(**READS | numbers))
    assert ranked
    if ranked[0].name == lag_cause.UNKNOWN:
        return
    sure = [cause.confidence or 0 for cause in ranked]
    assert sure == sorted(sure, reverse=True)
    assert all(lag_cause.LEAST_CONFIDENCE <= each <= 0.95 for each in sure)
    assert len({cause.name for cause in ranked}) == len(ranked) <= len(CAUSES)
