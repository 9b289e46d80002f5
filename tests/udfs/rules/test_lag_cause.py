"""Why a group lags: causes by their evidence, two at once, what is explained away, and unknown."""

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules import lag_cause
from quotaflow.udfs.rules.lag_cause import CAUSES, Cause, causes
from quotaflow.udfs.rules.lag_evidence import Evidence

from ...cases import cases, grouped

# A group with members that read, of which nothing explains the lag.
READS: dict[str, Any] = {"trend": "growing", "in_ratio": 1.0, "out_ratio": 0.8}
READS |= dict.fromkeys(("stalled_lag_share", "unassigned_lag_share", "reread_lag_share"), 0.0)
READS |= {"beyond_end_partitions": 0, "partitions": 6}
READS |= {"hot_partition": 3, "hot_lag_share": 0.2, "hot_in_ratio": 1.1}
READS |= {"group_state": "Stable", "members": 2, "groups_of_client": 1}
READS |= {"heartbeats": 200, "commits": 120, "recent_commits": 36}
READS |= {"consumed_bytes": 10_000_000, "recent_bytes": 3_000_000}
READS |= {"fetches": 600, "fetches_per_s": 0.5, "throttle_time_share": 0.0}
READS |= {"limit_share": 0.1, "limited_by": "partition_max_bytes", "limit_bytes": 1_048_576}
READS |= {"broker_time_share": 0.01, "broker_id": 1, "broker_ms": 1.0, "other_brokers_ms": 1.0}
READS |= {"network_time_share": 0.01, "network_ms": 0.5, "cross_rack_share": 0.0}
READS |= {"blocked_records": 0, "uncommitted_partitions": 0, "assigned_partitions": 6}
READS |= {"poll_idle_ratio": 0.6, "time_between_polls_ms": 100.0, "last_poll_s": 0.1}
THROTTLE = {"throttle_time_share": 0.5, "throttled_by": "consumer_byte_rate", "quota": 1e6}
SMALL_LIMIT = {"limit_share": 0.95, "limit_bytes": 16_384, "fetches_per_s": 9.0}
FAR = {"network_time_share": 0.8, "network_ms": 80.0, "cross_rack_share": 1.0}
SLOW = {"poll_idle_ratio": 0.02, "time_between_polls_ms": 9_000.0}
STALLED = {"stalled_lag_share": 1.0, "commits": 0, "consumed_bytes": 0, "fetches": 0}
STALLED |= {"recent_commits": 0, "recent_bytes": 0}
BEFORE = {"commits": 60, "consumed_bytes": 5_000_000, "fetches": 300}
"""What a group did until minutes ago."""
ELSEWHERE = {"unassigned_lag_share": 1.0, "last_poll_s": None, "assigned_partitions": 0}
EMPTY = {"unassigned_lag_share": 1.0, "group_state": "Empty", "members": 0} | STALLED
SKEW = {"hot_in_ratio": 8.0, "hot_lag_share": 0.97}
RATES = {"records_in_per_s": 100.0, "records_out_per_s": 200.0}
OPEN = {"blocked_records": 900, "open_transaction_s": 600.0, "producer_id": 9}
OPEN |= {"transaction_of": "pay-1", "open_partition": 2, "start_offset": 200}
FENCED = {"fenced_answers": 300, "instance_claimants": 2, "group_instance_id": "node-1"}
STUCK = {"stuck_partition": 3, "stuck_lag_share": 1.0, "stalled_lag_share": 1.0}
NO_TELEMETRY = dict.fromkeys(("poll_idle_ratio", "time_between_polls_ms", "last_poll_s"))

CASES: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {
    ("unknown",): {
        "nothing explains it": {},
        "a throttle that is over in no time": {"throttle_time_share": 0.04},
        "answers are full, and seldom": SMALL_LIMIT | {"fetches_per_s": 0.8},
        "a slow network within a rack": FAR | {"cross_rack_share": 0.0},
        "another rack that is as near": FAR | {"network_ms": 1.0},
        "one rebalance": {"rebalances": 1, "rebalance_time_share": 0.01},
        "a transaction that was opened a moment ago": OPEN | {"open_transaction_s": 5.0},
        "one fenced answer of a member that was replaced": FENCED | {"fenced_answers": 1},
        "members have other topics, and somebody commits": {"assigned_partitions": 0},
        "it polls seldom, and gets on": {"last_poll_s": 120.0},
        "a topic of one partition": SKEW | {"partitions": 1},
        "many fetches that take no time": {"broker_time_share": 0.7, "broker_ms": 0.7},
        "nobody is there, and somebody commits": EMPTY | {"commits": 5, "recent_commits": 2},
        "nothing is known": dict.fromkeys(READS),
    },
    ("throttled",): {"a quota": THROTTLE},
    ("fetch_limited",): {
        "a small limit": SMALL_LIMIT,
        "answers of Kafka's own limit are full": SMALL_LIMIT | {"limit_bytes": 1_048_576},
    },
    ("slow_processing",): {
        "answers are full, and the application takes its time": SMALL_LIMIT | SLOW,
        "a share group reads, and nothing of its time is spent at brokers": NO_TELEMETRY
        | {"consumed_bytes": None, "recent_bytes": None, "acquired_records": 900},
        "it reads nothing since minutes, and nobody knows if it polls": STALLED
        | BEFORE
        | NO_TELEMETRY,
        "records take long": SLOW,
        "nothing of its time is spent at brokers": NO_TELEMETRY,
        "one partition lags, and gets as much as others": SKEW | SLOW | {"hot_in_ratio": 1.0},
    },
    ("fetch_limited", "far_replica"): {
        "answers are full and seldom, since each takes long on its way": SMALL_LIMIT
        | FAR
        | {"fetches_per_s": 0.8},
        "another rack and a small limit": FAR | SMALL_LIMIT,
    },
    ("far_replica",): {"another rack": FAR},
    ("out_of_range",): {
        "offsets out of range": {"out_of_range_answers": 50} | STALLED,
        "an offset past the end": {"beyond_end_partitions": 1},
        "it went back": {"reread_lag_share": 0.9, "trend": "went_back"},
        "it catches up with what it had read, as fast as it can": SLOW
        | {"reread_lag_share": 0.9}
        | RATES,
    },
    ("rebalancing",): {
        "members stop again and again": {"rebalance_time_share": 0.4, "rebalances": 12},
        "rebalances that stop nobody": {"rebalances": 8},
        "members stop, and would keep up otherwise": SLOW
        | {"rebalance_time_share": 0.5, "poll_idle_ratio": 0.5}
        | RATES
        | {"records_out_per_s": 55.0},
    },
    ("not_polling",): {
        "it does not poll, by telemetry": STALLED | {"last_poll_s": 250.0},
        "it heartbeats and reads nothing: nobody knows if it polls": STALLED | NO_TELEMETRY,
        "it stopped before it committed in one of its partitions": STALLED
        | {"last_poll_s": 250.0, "uncommitted_partitions": 1},
    },
    ("not_polling", "no_members"): {
        "it does not poll, by the reason of its client": EMPTY | {"poll_timeouts": 1}
    },
    ("paused",): {
        "it polls and reads nothing": STALLED,
        "it polls, and reads nothing since minutes": STALLED | BEFORE,
    },
    ("skewed_partitions",): {"one partition gets most": SKEW | SLOW},
    ("slow_broker",): {
        "a slow broker": {"broker_time_share": 0.7, "broker_ms": 90.0, "other_brokers_ms": 2.0}
    },
    ("producers_faster", "slow_processing"): {
        "more records than ever": {"in_ratio": 4.0, "out_ratio": 1.1} | SLOW
    },
    ("producers_faster",): {
        "more records, and it reads fewer": {"in_ratio": 4.0, "out_ratio": 0.2}
    },
    ("out_of_range", "slow_processing"): {
        "it went back, and is too slow for what comes": SLOW
        | {"reread_lag_share": 0.9}
        | RATES
        | {"records_out_per_s": 50.0}
    },
    ("rebalancing", "slow_processing"): {
        "members stop, and are too slow in between": SLOW
        | {"rebalance_time_share": 0.5, "poll_idle_ratio": 0.5}
        | RATES
        | {"records_out_per_s": 25.0}
    },
    ("no_members",): {
        "nobody is there": EMPTY,
        "nobody is there, and records come as never before": EMPTY
        | {"in_ratio": 4.0, "out_ratio": None},
        "nobody is there since minutes": EMPTY | BEFORE,
        "its members are not known": STALLED
        | {"unassigned_lag_share": 1.0, "last_poll_s": None, "assigned_partitions": None},
    },
    ("open_transaction",): {
        "it waits for a transaction to end": OPEN,
        "it waits, and reads nothing": OPEN | STALLED | NO_TELEMETRY,
        "nobody knows whose transaction it is": OPEN
        | dict.fromkeys(("producer_id", "transaction_of")),
    },
    ("fenced_instance",): {
        "two members with one group.instance.id": FENCED | EMPTY,
        "an answer says so, and nobody saw the other": FENCED | {"instance_claimants": 1},
    },
    ("not_subscribed",): {
        "members have other topics": STALLED | ELSEWHERE,
        "they read and commit these": {"stalled_lag_share": 1.0, "fetches": 8_000}
        | {"commits": 60, "recent_commits": 30, "consumed_bytes": 156_000, "recent_bytes": 0}
        | ELSEWHERE,
    },
    ("never_committed",): {"its members never committed": {"uncommitted_partitions": 3}},
    ("never_committed", "paused"): {
        "it polls and reads nothing, and never committed": STALLED
        | {"uncommitted_partitions": 6, "last_poll_s": 0.0}
    },
    ("stuck_partition",): {
        "its member reads the others": STUCK,
        "its member reads the others, and has time": STUCK | NO_TELEMETRY,
    },
    ("throttled", "far_replica"): {"a quota and another rack": THROTTLE | FAR},
    ("throttled", "slow_processing"): {"a quota and slow work": THROTTLE | SLOW},
}


@cases(("changed", "expected"), *grouped(CASES))
def test_causes_of_a_case(changed: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert tuple(cause.name for cause in causes(Evidence(**READS | changed))) == expected


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


_DRAWN = {
    float | None: st.none() | st.floats(allow_infinity=True, allow_nan=True),
    int | None: st.none() | st.integers(0, 10**9),
    str | None: st.sampled_from((None, "Stable", "Empty", "PreparingRebalance", "growing")),
}


@given(
    st.fixed_dictionaries({name: _DRAWN[hint] for name, hint in get_type_hints(Evidence).items()})
)
def test_any_numbers_give_ranked_causes_with_their_evidence(numbers: dict[str, Any]) -> None:
    ranked = causes(Evidence(**numbers))
    assert ranked
    if ranked[0].name == lag_cause.UNKNOWN:
        return
    assert [cause for cause in ranked if not cause.signals] == []
    sure = [cause.confidence or 0 for cause in ranked]
    assert sure == sorted(sure, reverse=True)
    assert all(lag_cause.LEAST_CONFIDENCE <= each <= 0.95 for each in sure)
    assert len({cause.name for cause in ranked}) == len(ranked) <= len(CAUSES)


@pytest.mark.parametrize("name", CAUSES)
@given(
    numbers=st.fixed_dictionaries(
        {name: _DRAWN[hint] for name, hint in get_type_hints(Evidence).items()}
    )
)
def test_no_cause_is_likely_where_none_of_its_signals_is_known(
    name: str, numbers: dict[str, Any]
) -> None:
    unknown = dict.fromkeys(lag_cause.SIGNALS[name])
    assert [cause for cause in causes(Evidence(**numbers | unknown)) if cause.name == name] == []
