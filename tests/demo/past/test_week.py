"""The demo's made week: brokers could have written its lines, and it ends where the cluster is."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from quotaflow.demo.past import week
from quotaflow.demo.past.clock import DAY_MS, DAYS, HOUR_MS, Clock, busy
from quotaflow.demo.past.week import Week

from ...record_batches import parsed

NOON_MS = round(datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp() * 1e3)
TOPIC_IDS = {topic: f"{topic:A<22}" for topic in week.PLACED_BEFORE}


@pytest.fixture(scope="module")
def made() -> list[tuple[int, int, bytes]]:
    return Week(Clock(NOON_MS), TOPIC_IDS, 1).lines()


def requests_of(made: list[tuple[int, int, bytes]]) -> list[dict[str, Any]]:
    return [json.loads(line)["r"] for *_, line in made]


def test_every_line_can_be_read(made: list[tuple[int, int, bytes]]) -> None:
    # A prime step takes some of each client; the last day has those that are rare.
    rare = [each for each in made if b"ALTER" in each[2]]
    some = [*made[::23], *rare]
    times = [datetime.fromtimestamp(ts_ms / 1e3, UTC) for ts_ms, *_ in some]
    rows = parsed([line for *_, line in some], time=times)
    assert {row["reason"] for row in rows} == {None}
    assert [(row["event_time"], row["broker_id"]) for row in rows] == [
        (time, broker) for time, (_, broker, _) in zip(times, some, strict=True)
    ]
    assert {row["principal"] for row in rows} >= {
        f"User:{name}" for name in ("shop", "search", "billing", "reports", "fraud", "admin")
    }


def test_lines_are_in_order_of_a_week_and_few(made: list[tuple[int, int, bytes]]) -> None:
    times = [ts_ms for ts_ms, *_ in made]
    assert times == sorted(times)
    assert DAYS * DAY_MS - HOUR_MS < NOON_MS - times[0] < DAYS * DAY_MS + HOUR_MS
    assert NOON_MS - times[-1] < HOUR_MS
    assert len(made) < 30_000
    by_day = Counter((NOON_MS - ts_ms) // DAY_MS for ts_ms in times)
    assert by_day[0] > 5 * by_day[1] > 5 * by_day[2]


def test_the_week_is_the_same_for_a_seed(made: list[tuple[int, int, bytes]]) -> None:
    assert Week(Clock(NOON_MS), TOPIC_IDS, 1).lines() == made


def test_no_offset_is_past_the_end_that_the_cluster_has(
    made: list[tuple[int, int, bytes]],
) -> None:
    ends = [
        answer["partitions"][0]["highWatermark"]
        for request in requests_of(made)
        if request["requestHeader"]["requestApiKeyName"] == "FETCH"
        for answer in request["response"]["responses"]
    ]
    assert 0.99 * week.RECORDS < max(ends) <= week.RECORDS


def test_the_last_commits_are_where_the_groups_are(made: list[tuple[int, int, bytes]]) -> None:
    last: dict[str, dict[tuple[str, int], int]] = {}
    for request in requests_of(made):
        if request["requestHeader"]["requestApiKeyName"] == "OFFSET_COMMIT":
            (topic,) = request["request"]["topics"]
            last[request["request"]["groupId"]] = {
                (topic["name"], each["partitionIndex"]): each["committedOffset"]
                for each in topic["partitions"]
            }
    positions = Week(Clock(NOON_MS), TOPIC_IDS, 1).positions()
    assert last.keys() == positions.keys()
    # A group without members does not go on; the others read until the end.
    assert last[week.REPORTS] == positions[week.REPORTS]
    assert all(offset < week.RECORDS * 0.99 for offset in last[week.REPORTS].values())
    assert all(
        offset > week.RECORDS * 0.99
        for name in (week.WORKERS, week.MAILERS)
        for offset in last[name].values()
    )


def test_business_hours_are_busier_than_nights_and_weekends() -> None:
    def at(day: int, hour: int) -> float:
        return busy(round(datetime(2026, 11, day, hour, tzinfo=UTC).timestamp() * 1e3))

    wednesday, saturday = 25, 28
    assert at(wednesday, 3) < at(wednesday, 12) / 3
    assert at(saturday, 12) < at(wednesday, 12) / 2
