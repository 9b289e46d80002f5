"""Whom consumers read from, from fetches and snapshots."""

import pytest

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.results.declared import result_of

from ....oracle.rules.replica import RACK_AWARE
from ....rows import Row, minute
from .replica_rows import BEFORE, RACKS, answered, broker, computed, fetch, replica, seen, selector

TOPIC = seen(BEFORE, topic_id="id1", topic="orders")
THREE = {
    "topics": [TOPIC],
    "replicas": [replica(n) for n in (1, 2, 3)],
    "brokers": [broker(1, "az-a"), broker(2, "az-b"), broker(3, "az-c")],
    "configs": [selector(RACK_AWARE)],
}
NAMED = {"preferred_read_replica": 2}
CHOICE = ("expected_replica", "expected_reason", "recommended_replica", "recommended_reason")
NEAR = (2, "follower_in_rack", 2, "follower_in_rack")

CASES: dict[str, tuple[list[Row], dict[str, list[Row]], dict[tuple[int, int], Row]]] = {
    "told, and gone there": (
        [
            fetch(1, 1, answered(0, **NAMED), answered(None, **NAMED, partition=0)),
            fetch(2, 2, answered(70, high_watermark=90)),
            fetch(3, 2, answered(7, high_watermark=95)),
            fetch(4, 1, answered(9_000, high_watermark=120), replica_id=3, rack_id=None),
            fetch(5, 2, answered(9_000, high_watermark=300), replica_id=3, rack_id=None),
            fetch(6, 2, answered(0), answered(5, error_code=1)),
        ],
        THREE,
        {
            (0, 1): {
                "fetches": 0,
                "bytes": 0,
                "redirects": 2,
                "preferred_read_replica": 2,
                "hw_lag": None,
            }
            | {"cross_rack_bytes": 0, "leader_rack": "az-a", "broker_rack": "az-a"},
            (0, 2): {"fetches": 2, "bytes": 77, "redirects": 0, "preferred_read_replica": None}
            | {"cross_rack_bytes": 0, "avoidable_bytes": 0, "hw_lag": 20, "eligibility": "known"}
            | {"broker_rack": "az-b", "leader_id": 1, "api_version": 17}
            | {"eligible_replicas": [2]}
            | dict(zip(CHOICE, NEAR, strict=True)),
        },
    ),
    "no selector": (
        [fetch(1, 1, answered(70))],
        THREE | {"configs": [selector(None)]},
        {
            (0, 1): {"expected_replica": 1, "expected_reason": "no_selector"}
            | {"recommended_replica": 2, "cross_rack_bytes": 70, "avoidable_bytes": 70}
        },
    ),
    "a selector of somebody's own": (
        [fetch(1, 1, answered(70))],
        THREE | {"configs": [selector("com.example.Nearest")]},
        {
            (0, 1): {"expected_replica": None, "expected_reason": "selector_unknown"}
            | {"recommended_replica": 2, "eligibility": "known"}
        },
    ),
    "an old client by topic name, its rack by its address": (
        [
            fetch(1, 1, answered(70, topic="orders", topic_id=None), api_version=8)
            | {"rack_id": None, "client_address": "10.2.7.7"}
        ],
        THREE,
        {
            (0, 1): {"topic_id": "id1", "client_rack": "az-b", "is_rack_inferred": True}
            | {"expected_reason": "no_client_rack", "expected_replica": 1, "api_version": 8}
            | {"eligible_replicas": [2]}
            | {"recommended_replica": 2, "avoidable_bytes": 70}
        },
    ),
    "two followers as near as each other": (
        [fetch(1, 1, answered(70))],
        THREE | {"brokers": [broker(1, "az-a"), broker(2, "az-b"), broker(3, "az-b")]},
        {
            (0, 1): {"recommended_replica": 3, "eligible_replicas": [2, 3]}
            | {"eligibility": "offsets_unknown", "avoidable_bytes": 70}
        },
    ),
    "no rack is known": (
        [fetch(1, 1, answered(70), rack_id=None)],
        THREE,
        {
            (0, 1): {"client_rack": None, "is_rack_inferred": False, "cross_rack_bytes": None}
            | {"avoidable_bytes": None, "recommended_reason": "no_client_rack"}
            | {"eligible_replicas": None}
        },
    ),
    "as of the minute": (
        [fetch(minute * 60 + 1, 1, answered(70)) for minute in range(4)],
        {
            "topics": [TOPIC],
            "replicas": [
                *(replica(n, 30) for n in (1, 2)),
                replica(2, 90, is_in_sync=False),
                replica(2, 200, is_removed=True),
            ],
            "brokers": [broker(1, "az-a", 30), broker(2, "az-b", 30)],
            "configs": [selector(None, 30), selector(RACK_AWARE, 70)],
        },
        {
            (0, 1): {"expected_reason": "no_selector", "recommended_replica": 2, "topic": "orders"}
            | {"is_before_snapshot": False},
            (1, 1): {"expected_reason": "not_eligible_in_rack", "recommended_replica": 1}
            | {"cross_rack_bytes": 70, "avoidable_bytes": 0},
            (2, 1): {"expected_reason": "not_eligible_in_rack"},
            (3, 1): {"expected_reason": "no_replica_in_rack", "avoidable_bytes": 0},
        },
    ),
    "before the first snapshot, and a topic made after it": (
        [fetch(-1, 1, answered(70)), fetch(-2, 2, answered(70, topic_id="id2"))],
        {
            "topics": [seen(1, topic_id="id1", topic="orders")],
            "replicas": [replica(1, 1), replica(2, 9, topic_id="id2")],
            "brokers": [broker(1, "az-b", 1), broker(2, "az-a", 1)],
            "configs": [selector(None, 1)],
        },
        {
            (-1, 1): {"eligibility": "known", "is_before_snapshot": True, "topic": "orders"}
            | {"expected_reason": "no_selector", "recommended_reason": "leader_in_rack"},
            (-1, 2): {"eligibility": "replicas_unknown", "leader_id": None, "topic": None}
            | {"expected_reason": None, "recommended_replica": None, "avoidable_bytes": None}
            | {"is_before_snapshot": None, "cross_rack_bytes": 70},
        },
    ),
    "configs nobody saw, and a broker without a rack": (
        [fetch(1, 1, answered(70))],
        {
            "replicas": [replica(1)],
            "brokers": [broker(1, None)],
            "configs": [selector(None) | {"entity_name": "2"}],
        },
        {
            (0, 1): {"broker_rack": None, "cross_rack_bytes": None, "avoidable_bytes": None}
            | {"expected_reason": None, "eligibility": "selector_unseen"}
            | {"recommended_reason": "no_replica_in_rack"}
        },
    ),
    "a broker nobody saw": (
        [fetch(1, 1, answered(70))],
        THREE | {"brokers": [broker(1, "az-a"), broker(2, "az-b")]},
        {
            (0, 1): {"expected_reason": None, "eligibility": "racks_unknown"}
            | {"cross_rack_bytes": 70, "avoidable_bytes": None}
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_whom_a_consumer_reads_from(case: str) -> None:
    fetches, snapshots, expected = CASES[case]
    got = computed(result_of("preferred_replicas", Conf(racks=RACKS)), fetches=fetches, **snapshots)
    rows = {(minute(row), row["broker_id"]): row for row in got}
    assert {key: {name: rows[key][name] for name in row} for key, row in expected.items()} == (
        expected
    )
    assert rows.keys() == expected.keys()
