"""SHARE_FETCH under quotas: brokers charge its bytes to consumer_byte_rate, and log none."""

from typing import Any

from quotaflow.pipelines.results.declared import result_of

from ....cases import cases, grouped
from ....rows import Row
from ....rule_rows import compute
from .quota_rows import of_bytes, quota, request

BYTES, TIME = "consumer_byte_rate", "request_percentage"
BYTE_QUOTA = quota(-5, BYTES, 20_000.0, user="alice")
TIME_QUOTA = quota(-5, TIME, 1.0, user="alice")
"""Of an IO thread 1 %: 110 ms in a window of 11 s."""


def shared(second: float, throttle_ms: float = 0.0, **others: Any) -> Row:
    return request(second, "SHARE_FETCH", throttle_time_ms=throttle_ms, **others)


def usage(facts: list[Row], *quotas: Row) -> list[Row]:
    rows = compute(result_of("quota_usage"), requests=facts, client_quotas=list(quotas))
    return [row for row in rows if row["quota_type"] == BYTES]


FETCHED: Row = {"throttle_time_ms": 9.0, "local_time_ms": 50.0, **of_bytes(5)}
BOTH = [BYTE_QUOTA, TIME_QUOTA]
# Requests and quotas, by the quota that likely throttled them.
CAUSES: dict[str | None, dict[str, tuple[list[Row], list[Row]]]] = {
    BYTES: {
        "40 s are no throttle of request time": ([shared(1, 39_999.0, local_time_ms=500.0)], BOTH),
        "a short one while request time is left": ([shared(1, 300.0, local_time_ms=50.0)], BOTH),
        "a fetch that shares the bucket": ([shared(1), request(2, "FETCH", **FETCHED)], BOTH),
        "a fetch a window after it": ([shared(1), request(12, "FETCH", **FETCHED)], BOTH),
    },
    TIME: {
        "a short one with request time used up": ([shared(1, 300.0, local_time_ms=111.0)], BOTH),
        "a short one without a quota of bytes": ([shared(1, 300.0)], [TIME_QUOTA]),
        "a fetch two windows after it": ([shared(1), request(23, "FETCH", **FETCHED)], BOTH),
    },
    None: {
        "40 s by a quota that nothing knows": (
            [shared(1, 39_999.0, local_time_ms=500.0)],
            [TIME_QUOTA],
        )
    },
}


@cases(("given", "cause"), *grouped(CAUSES))
def test_what_throttled_a_share_consumer(
    given: tuple[list[Row], list[Row]], cause: str | None
) -> None:
    facts, quotas = given
    newest = max(usage(facts, *quotas), key=lambda row: row["event_time"])
    assert (newest["throttled_by"], newest["throttled_requests"]) == (cause, 1)


def test_usage_of_a_bucket_with_share_requests_is_a_lower_bound() -> None:
    facts = [shared(1, client_id="sharing"), request(2, "FETCH", **of_bytes(1_100))]
    facts += [request(12, "FETCH", **of_bytes(2_200)), shared(1, principal="User:bob", weight=3.0)]
    names = ("principal", "client_id", "usage", "share_requests", "request_count", "is_lower_bound")
    assert sorted(tuple(row[name] for name in names) for row in usage(facts, BYTE_QUOTA)) == [
        ("User:alice", "orders", 100.0, 0, 1, True),
        ("User:alice", "orders", 200.0, 0, 1, False),
        ("User:alice", "sharing", 0.0, 1, 1, True),
        ("User:bob", "orders", 0.0, 3, 3, True),
    ]


def test_acknowledgements_count_under_request_time() -> None:
    assert not usage([request(1, "SHARE_ACKNOWLEDGE", throttle_time_ms=5.0)], BYTE_QUOTA)
