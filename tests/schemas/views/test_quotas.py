"""Views of quota usage: who is nearest a quota, and what throttled whom."""

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.udfs.rules.quota import NEAR_SHARE

from ...delta_tables import Fill
from ...rows import Row, used
from .view_tables import by_case, picked, rows


def test_headroom_is_that_of_the_worst_window_of_the_last_hour(
    warehouse: Warehouse, fill: Fill
) -> None:
    shared = {
        "client_id": "clicks",
        "quota_bucket_usage": 1_500.0,
        "headroom": -500.0,
        "is_over": True,
    }
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
    fill("quota_usage", content)
    actual = rows(warehouse, "SELECT * FROM quota_headroom ORDER BY cluster_id, broker_id")
    names = ("broker_id", "peak_usage", "headroom", "peak_share", "windows", "windows_over")
    assert picked(actual, *names, "client_ids", "enforcement") == [
        (1, 1_500.0, -500.0, 1.5, 2, 1, 2, "stock"),
        (2, 400.0, 600.0, 0.4, 1, 0, 1, "stock"),
        (1, 10.0, 990.0, 0.01, 1, 0, 1, "callback"),
    ]


BYTES, TIME = "producer_byte_rate", "request_percentage"
THROTTLES = {"throttled_requests": 2, "throttle_time_ms": 30.0}
# Usage of a quota of 1,000, and the state of its bucket.
STATES: dict[str, tuple[list[Row], str]] = {
    "unused": ([used(0, BYTES, 10.0)], "free"),
    "near": ([used(0, BYTES, 1_000 * NEAR_SHARE)], "near"),
    "almost near": ([used(0, BYTES, 1_000 * NEAR_SHARE - 1)], "free"),
    "over, and not throttled": ([used(0, BYTES, 1_100.0)], "over"),
    "throttled just below it": (
        [used(0, BYTES, 999.0, throttled_by=BYTES, **THROTTLES)],
        "throttled",
    ),
    "throttled far below it": ([used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES)], "throttled"),
    "throttled in another window": (
        [used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES), used(11, BYTES, 1_100.0)],
        "throttled",
    ),
    "throttled by a quota of time": (
        [
            used(0, BYTES, 900.0, throttled_by=TIME, **THROTTLES),
            used(0, TIME, 1.0, quota=None, headroom=None),
        ],
        "near",
    ),
    "a quota of time that throttled requests of bytes": (
        [
            used(0, BYTES, 900.0, quota=None, headroom=None, throttled_by=TIME, **THROTTLES),
            used(0, TIME, 1.0),
        ],
        "throttled",
    ),
    "another client was throttled": (
        [
            used(0, BYTES, 900.0),
            used(
                0,
                BYTES,
                1.0,
                principal="User:bob",
                quota=None,
                headroom=None,
                throttled_by=BYTES,
                **THROTTLES,
            ),
        ],
        "near",
    ),
    "throttled more than an hour ago": (
        [used(-3_700, BYTES, 999.0, throttled_by=BYTES, **THROTTLES), used(0, BYTES, 900.0)],
        "near",
    ),
    "bytes of share consumers are in no line": (
        [used(0, "consumer_byte_rate", 0.0, share_requests=4, is_lower_bound=True)],
        "unknown",
    ),
    "more than the quota without them": (
        [used(0, "consumer_byte_rate", 1_100.0, share_requests=4, is_lower_bound=True)],
        "over",
    ),
}


@pytest.fixture(scope="module")
def headroom() -> dict[str, list[Row]]:
    """The buckets of each case."""
    cases = {case: {"quota_usage": usage} for case, (usage, _) in STATES.items()}
    return by_case(cases, "SELECT * FROM quota_headroom")


@pytest.mark.parametrize("case", STATES)
def test_a_bucket_is_in_one_state(headroom: dict[str, list[Row]], case: str) -> None:
    (bucket,) = headroom[case]
    assert bucket["state"] == STATES[case][1]
    assert (bucket["windows_throttled"] > 0) == (bucket["state"] == "throttled")


def test_throttled_time_is_summed_by_the_quota_that_did_it(
    warehouse: Warehouse, fill: Fill
) -> None:
    limited = {"throttled_requests": 2, "throttle_time_ms": 30.0}
    content = [
        used(0, "producer_byte_rate", 1.0, throttled_by="producer_byte_rate", **limited),
        used(11, "producer_byte_rate", 1.0, throttled_by="request_percentage", **limited),
        used(
            22, "producer_byte_rate", 1.0, broker_id=2, throttled_by="request_percentage", **limited
        ),
        used(3_600, "producer_byte_rate", 1.0, **limited),
        used(33, "producer_byte_rate", 1.0),
    ]
    fill("quota_usage", content)
    actual = rows(warehouse, "SELECT * FROM throttled_clients ORDER BY hour, throttled_by")
    names = (
        "throttled_by",
        "throttled_requests",
        "request_count",
        "throttle_time_ms",
        "broker_count",
    )
    assert picked(actual, *names) == [
        ("producer_byte_rate", 2, 10, 30.0, 1),
        ("request_percentage", 4, 20, 60.0, 2),
        (None, 2, 10, 30.0, 1),
    ]
