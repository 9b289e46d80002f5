"""Views of quota usage: who is nearest a quota, and what throttled whom."""

from quotaflow.udfs.rules.quota import NEAR_SHARE

from ...rows import Row, used
from .view_tables import assert_outcomes, in_table, picked, view


def test_headroom_is_that_of_the_worst_window_of_the_last_hour() -> None:
    shared = {"client_id": "clicks", "quota_bucket_usage": 1_500.0, "headroom": -500.0}
    shared |= {"is_over": True}
    content = [
        used(-3_600, "producer_byte_rate", 9_000.0),
        used(-3_589, "producer_byte_rate", 100.0),
        used(0, "producer_byte_rate", 700.0, **shared | {"client_id": "orders"}),
        used(0, "producer_byte_rate", 800.0, **shared),
        used(0, "producer_byte_rate", 400.0, broker_id=2),
        used(0, "producer_byte_rate", 5e9, quota=None, headroom=None),
        # Another cluster's hour is its own.
        used(-9_000, "producer_byte_rate", 10.0, cluster_id="c2", enforcement="callback"),
    ]
    actual = view("quota_headroom ORDER BY cluster_id, broker_id", {"quota_usage": content})
    names = ("broker_id", "peak_usage", "headroom", "peak_share", "windows", "windows_over")
    assert picked(actual, *names, "client_ids", "enforcement") == [
        (1, 1_500.0, -500.0, 1.5, 2, 1, 2, "stock"),
        (2, 400.0, 600.0, 0.4, 1, 0, 1, "stock"),
        (1, 10.0, 990.0, 0.01, 1, 0, 1, "callback"),
    ]


BYTES, TIME = "producer_byte_rate", "request_percentage"
THROTTLES = {"throttled_requests": 2, "throttle_time_ms": 30.0}
OF_NONE = {"quota": None, "headroom": None}
SHARED = {"share_requests": 4, "is_lower_bound": True}
# Usage of a quota of 1,000, by the state of its bucket.
STATES: dict[tuple[str], dict[str, list[Row]]] = {
    ("free",): {
        "unused": [used(0, BYTES, 10.0)],
        "almost near": [used(0, BYTES, 1_000 * NEAR_SHARE - 1)],
    },
    ("near",): {
        "near": [used(0, BYTES, 1_000 * NEAR_SHARE)],
        "throttled by a quota of time": [
            used(0, BYTES, 900.0, throttled_by=TIME, **THROTTLES),
            used(0, TIME, 1.0, **OF_NONE),
        ],
        "another client was throttled": [
            used(0, BYTES, 900.0),
            used(0, BYTES, 1.0, **OF_NONE, principal="User:bob", throttled_by=BYTES, **THROTTLES),
        ],
        "throttled more than an hour ago": [
            used(-3_700, BYTES, 999.0, throttled_by=BYTES, **THROTTLES),
            used(0, BYTES, 900.0),
        ],
    },
    ("over",): {
        "over, and not throttled": [used(0, BYTES, 1_100.0)],
        "more than the quota without bytes of share consumers": [
            used(0, "consumer_byte_rate", 1_100.0, **SHARED)
        ],
    },
    ("throttled",): {
        "throttled just below it": [used(0, BYTES, 999.0, throttled_by=BYTES, **THROTTLES)],
        "throttled far below it": [used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES)],
        "throttled in another window": [
            used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES),
            used(11, BYTES, 1_100.0),
        ],
        "a quota of time that throttled requests of bytes": [
            used(0, BYTES, 900.0, **OF_NONE, throttled_by=TIME, **THROTTLES),
            used(0, TIME, 1.0),
        ],
    },
    ("unknown",): {
        "bytes of share consumers are in no line": [used(0, "consumer_byte_rate", 0.0, **SHARED)]
    },
}


def test_a_bucket_is_in_one_state() -> None:
    buckets = assert_outcomes(in_table("quota_usage", STATES), "quota_headroom", "state")
    for (bucket,) in buckets.values():
        assert (bucket["windows_throttled"] > 0) == (bucket["state"] == "throttled")


def test_throttled_time_is_summed_by_the_quota_that_did_it() -> None:
    content = [
        used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES),
        used(11, BYTES, 1.0, throttled_by=TIME, **THROTTLES),
        used(22, BYTES, 1.0, broker_id=2, throttled_by=TIME, **THROTTLES),
        used(3_600, BYTES, 1.0, **THROTTLES),
        used(33, BYTES, 1.0),
    ]
    actual = view("throttled_clients ORDER BY hour, throttled_by", {"quota_usage": content})
    names = ("throttled_by", "throttled_requests", "request_count", "throttle_time_ms")
    assert picked(actual, *names, "broker_count") == [
        ("producer_byte_rate", 2, 10, 30.0, 1),
        ("request_percentage", 4, 20, 60.0, 2),
        (None, 2, 10, 30.0, 1),
    ]


def test_throttled_instances_of_a_program_are_one_row() -> None:
    names = ["producer-1", "producer-2", "producer-3", "billing", None]
    content = [
        used(0, BYTES, 1.0, client_id=name, throttled_by=BYTES, **THROTTLES) for name in names
    ]
    actual = view("throttled_clients ORDER BY client_id NULLS LAST", {"quota_usage": content})
    assert picked(actual, "client_id", "client_ids", "throttled_requests") == [
        ("billing", 1, 2),
        ("producer-*", 3, 6),
        (None, 0, 2),
    ]
