"""Where the time of requests goes, by client, API and minute."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotaflow.pipelines.results.declared import result_of

from ... import rows
from ...rows import Row, minute
from ...rule_rows import compute

RESULT = result_of("request_times")
PARTS = ("request_queue", "local", "remote", "response_queue", "send")
TIMES = tuple(f"{part}_time_ms" for part in (*PARTS, "throttle", "total"))
TIME = st.none() | st.floats(0, 1e6).map(lambda ms: round(ms, 3)) | st.just(math.nan)


def request(second: float, api: str, *ms: float | None, **others: Any) -> Row:
    """A request whose times are those of PARTS, then throttle and total."""
    times = dict(zip(TIMES, (*ms, *[None] * len(TIMES)), strict=False))
    return rows.request(second, api, **times | others)


def computed(*requests: Row) -> list[Row]:
    return compute(RESULT, requests=list(requests))


def test_parts_are_summed_by_minute_client_broker_and_api() -> None:
    got = computed(
        request(1, "PRODUCE", 1, 2, 3, 4, 5, 100, 15.0),
        request(2, "PRODUCE", 0.001, 0, 0, 0, 0, 0, 0.001, weight=10.0),
        request(3, "FETCH", 1, 2, 500, 0, 1, 0, 504.0),
        request(61, "PRODUCE", 1, 0, 0, 0, 0, 0, 1.0),
        request(4, "FETCH", 1, 2, 500, 0, 1, 0, 504.0, replica_id=2),
    )
    columns = ("request_count", "throttled_requests", "total_time_ms", "waited_time_ms")
    by_key = {(minute(row), row["api"]): tuple(row[name] for name in columns) for row in got}
    assert by_key == {
        (0, "PRODUCE"): (11, 1, 15.01, 115.01),
        (0, "FETCH"): (1, 0, 504.0, 4.0),
        (1, "PRODUCE"): (1, 0, 1.0, 1.0),
    }


def test_requests_are_counted_by_library_whatever_they_waited() -> None:
    java = {"client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"}
    (row,) = computed(
        request(1, "PRODUCE", 0, 1, 0, 0, 0, 0, 1.0, **java),
        request(2, "PRODUCE", 0, 500, 0, 0, 0, 0, 500.0, weight=10.0, **java),
        request(3, "PRODUCE", 0, 1, 0, 0, 0, 0, 1.0, **dict.fromkeys(java)),
    )
    assert [tuple(each.values()) for each in row["software"]] == [
        ("apache-kafka-java", "4.3.1", 11, rows.at(1), rows.at(2)),
        (None, None, 1, rows.at(3), rows.at(3)),
    ]
    counts = sorted(each["requests"] for each in row["waited_histogram"])
    assert (row["request_count"], row["line_count"], counts) == (12, 3, [2, 10])


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        # No line has the parts, or no total: both are known as far as they go.
        ((None, None, None, None, None, 0, 9.0), (1, 9.0, 9.0)),
        ((1, 2, None, 3, None, 0, None), (1, 6.0, 0.0)),
        ((1, 2, 0, 3, 0, 0, 10.0), (1, 10.0, 4.0)),
        ((None, None, None, None, None, 0, None), (0, 0.0, 0.0)),
        # What no clock measures is no time.
        ((math.nan, -5, 1e300, 3, 0, 0, 3.0), (1, 3.0, 0.0)),
    ],
)
def test_time_that_no_part_has_is_unknown(
    times: tuple[float | None, ...], expected: tuple[int, float, float]
) -> None:
    (row,) = computed(request(1, "PRODUCE", *times))
    names = ("timed_requests", "total_time_ms", "unknown_time_ms")
    assert tuple(row[name] for name in names) == expected


@given(st.lists(st.tuples(*[TIME] * len(TIMES)), min_size=1, max_size=20))
@example([(None, None, None, None, None, 1.0, None)])
def test_parts_add_up_to_the_whole(times: list[tuple[float | None, ...]]) -> None:
    (row,) = computed(*(request(1, "PRODUCE", *each) for each in times))
    parts = sum(row[f"{part}_time_ms"] for part in (*PARTS, "unknown"))
    assert row["total_time_ms"] == pytest.approx(parts)
    assert row["waited_time_ms"] == pytest.approx(row["total_time_ms"] + row["throttle_time_ms"])
    in_buckets = sum(cell["requests"] for cell in row["waited_histogram"] or ())
    assert in_buckets <= row["timed_requests"] <= row["request_count"] == len(times)


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=20))
def test_a_histogram_has_each_request_in_the_bucket_of_its_time(times: list[float]) -> None:
    (row,) = computed(*(request(1, "PRODUCE", ms) for ms in times))
    waited = row["waited_histogram"]
    assert sum(cell["requests"] for cell in waited) == len(times)
    bounds = [(2 ** (c["bucket"] / 8), 2 ** ((c["bucket"] + 1) / 8)) for c in waited]
    for ms in times:
        # Times are whole microseconds.
        assert any(low - 1e-3 <= ms <= high + 1e-3 for low, high in bounds)


def test_requests_are_counted_by_the_time_of_each_part() -> None:
    (produced, fetched) = sorted(
        computed(
            request(1, "PRODUCE", 4.999, 60, 100, 0, 5, 0, 170.0),
            request(2, "PRODUCE", 1, 60, 2, 0, 0, 90, 63.0, weight=10.0),
            request(3, "FETCH", 0, 1, 500, 0, 1, 0, 502.0),
        ),
        key=lambda row: row["api"] != "PRODUCE",
    )
    parts = {"local": [60.0] * 11, "remote": [100.0], "send": [5.0]}
    assert produced["part_histograms"] == rows.part_waits(parts)
    # It waits for records: that is no wait.
    assert fetched["part_histograms"] == []


def test_errors_and_sizes() -> None:
    parts = [
        {"bytes": 10, "error_code": 0},
        {"bytes": 20, "error_code": None},
        {"bytes": 40, "error_code": 6},
        {"bytes": 80, "error_code": 6},
        {"bytes": 0, "error_code": 0},
    ]
    produced, joined = sorted(
        computed(
            request(1, "PRODUCE", partitions=parts, error_code=None),
            request(2, "PRODUCE", partitions=[{"bytes": 1, "error_code": 0}], error_code=0),
            request(3, "JOIN_GROUP", error_code=79, weight=2.0),
            request(4, "JOIN_GROUP", error_code=0),
        ),
        key=lambda row: row["api"] != "PRODUCE",
    )
    assert (produced["bytes"], produced["batches"]) == (31, 3)
    assert produced["errors"] == [{"error_code": 6, "requests": 1}]
    assert joined["errors"] == [{"error_code": 79, "requests": 2}]
    assert joined["bytes"] == 0


def test_an_error_names_the_topics_and_groups_that_got_it() -> None:
    def parts(*named: tuple[str | None, str | None, int]) -> list[Row]:
        return [{"topic": t, "topic_id": i, "error_code": code} for t, i, code in named]

    refused = parts(("b", None, 29), ("a", None, 29), (None, "id", 29), ("c", None, 3))
    well = parts(("d", None, 0))
    (row,) = computed(
        request(1, "PRODUCE", partitions=refused + well, client_id=None),
        request(2, "PRODUCE", partitions=parts(("a", None, 29)), client_id=None),
    )
    assert row["errors"] == [{"error_code": 3, "requests": 1}, {"error_code": 29, "requests": 2}]
    assert [tuple(each.values()) for each in row["error_resources"]] == [
        (3, "c"),
        *((29, name) for name in ("a", "b", "id")),
    ]
    many = parts(*((f"topic-{n:02}", None, 29) for n in range(40)))
    (row,) = computed(request(1, "PRODUCE", partitions=many))
    assert [each["resource"] for each in row["error_resources"]] == [
        f"topic-{n:02}" for n in range(10)
    ]
    (row,) = computed(request(1, "JOIN_GROUP", error_code=30, group_id="sales"))
    assert row["error_resources"] == [{"error_code": 30, "resource": "sales"}]
    (row,) = computed(request(1, "JOIN_GROUP", error_code=0, group_id="sales"))
    assert row["error_resources"] is None


def test_topics_of_metadata_have_their_errors_in_the_body() -> None:
    def answered(second: float, *topics: tuple[str | None, int], **others: Any) -> Row:
        named = [{"errorCode": c, "name": n, "topicId": "id", "partitions": []} for n, c in topics]
        body = json.dumps({"response": {"topics": named}}, separators=(",", ":"))
        return request(second, "METADATA", body=body, **others)

    (row,) = computed(
        answered(1, ("orders", 0), ("gone", 3), (None, 100)),
        answered(2, ("gone", 3), weight=10.0),
        # A topic without a leader yet, a body that was cut, and one that is not kept.
        answered(3, ("new", 5)),
        request(4, "METADATA", body='{"response":{"topics":[{"errorCode":3,"na'),
        request(5, "METADATA"),
    )
    assert row["errors"] == [{"error_code": 3, "requests": 11}, {"error_code": 100, "requests": 1}]
    assert [tuple(each.values()) for each in row["error_resources"]] == [(3, "gone"), (100, "id")]
    (row,) = computed(answered(1, ("orders", 0)), answered(2, ("new", 5)))
    assert (row["errors"], row["error_resources"]) == (None, None)
