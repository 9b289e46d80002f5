"""Facts that change rolled-up rows: each window is there once, as if nothing were rolled up."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.maintenance.roll_up import RollUp
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import OpenSession
from quotaflow.schemas.tables.declared import CLIENT_QUOTAS

from .maintained import Maintained, Rows

CONF = config.load()
RESULT = result_of("quota_usage", CONF)
# More than a day ago: the newest rows are never rolled up.
MIDNIGHT = datetime(2025, 11, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def produced(hours: float, size: int = 1_100) -> dict[str, Any]:
    time = MIDNIGHT + hours * HOUR
    partition = {"topic": "t", "partition": 0, "bytes": size, "error_code": 0}
    return {
        "cluster_id": "c",
        "event_time": time,
        "record_time": time,
        "broker_id": 1,
        "api": "PRODUCE",
        "principal": "User:alice",
        "client_id": "orders",
        "partitions": [partition],
    }


FACTS = [produced(n / 50, 1_100 + n) for n in range(300)]
NEWEST = [produced(24 * 9)]


def roll_up(place: Maintained) -> None:
    conf = CONF.model_copy(update={"warehouse": place.warehouse.conf})
    rolling = RollUp(cast("OpenSession", None), conf, place.warehouse, lambda _: None)
    rolling.run(rolling.due(datetime.now(UTC)))


def content(place: Maintained) -> Rows:
    names = ", ".join(RESULT.table.key)
    return FolderReader(place.warehouse).rows(f"SELECT * FROM quota_usage ORDER BY {names}")


def made(folder: Path, *facts: Rows, rolled_up: bool, **others: int) -> Maintained:
    """A warehouse in which these facts come in batches, and old rows are rolled up after each."""
    place = Maintained.make(folder, RESULT, conf=CONF, **others)
    for number, rows in enumerate(facts):
        place.keep(place.arrive(rows), number)
        if rolled_up:
            roll_up(place)
    return place


@pytest.mark.parametrize(
    "late",
    [
        [produced(2.5)],
        pytest.param([produced(3), produced(0)], marks=pytest.mark.faults),
        pytest.param([produced(5.999), produced(30)], marks=pytest.mark.faults),
        [produced(n / 7) for n in range(20)],
    ],
    ids=["within an hour", "at the starts of hours", "where nothing was", "many"],
)
@pytest.mark.parametrize("rows_per_task", [20, pytest.param(5_000, marks=pytest.mark.faults)])
def test_facts_of_a_rolled_up_time_count_once(
    tmp_path: Path, late: Rows, rows_per_task: int
) -> None:
    batches = [FACTS + NEWEST, late]
    plain = made(tmp_path / "plain", *batches, rolled_up=False)
    place = made(tmp_path / "rolled", *batches, rolled_up=True, rows_per_task=rows_per_task)
    assert {None, 3_600} <= {row["rolled_up_s"] for row in content(place)}
    roll_up(plain)
    assert content(place) == content(plain)


def test_recent_rows_are_computed_by_window() -> None:
    recent = datetime.now(UTC).replace(microsecond=0)
    (time_range,) = RESULT.time_ranges([RESULT.bucket(recent)])
    assert time_range.end is not None
    assert time_range.end - time_range.start == timedelta(seconds=22)


def test_a_quota_known_later_changes_rolled_up_rows(tmp_path: Path) -> None:
    place = made(tmp_path, FACTS + NEWEST, rolled_up=True)
    quota = {
        "cluster_id": "c",
        "event_time": MIDNIGHT + 5 * HOUR,
        "set_at": MIDNIGHT + 1.5 * HOUR,
        "user": "alice",
        "is_default_user": False,
        "is_default_client_id": False,
        "is_default_ip": False,
        "config_key": "producer_byte_rate",
        "quota": 50.0,
        "is_removed": False,
    }
    place.append(CLIENT_QUOTAS, [quota])
    place.keep(place.arrive([produced(24 * 9 + 1)]), 1)
    of_kind = [row for row in content(place) if row["quota_type"] == "producer_byte_rate"]
    assert sum(row["amount"] for row in of_kind) == sum(1_100 + n for n in range(300)) + 2_200
    assert sum(row["windows"] for row in of_kind) == 302
    assert {row["rolled_up_s"] for row in of_kind if row["quota"]} == {None}
    roll_up(place)
    limited = [row for row in content(place) if row["quota"] and row["rolled_up_s"]]
    assert {row["event_time"] for row in limited} == {MIDNIGHT + n * HOUR for n in range(1, 6)}


@pytest.mark.parametrize("size_s", [600, 7_200])
def test_slices_of_a_rebuild_are_whole_hours(size_s: int) -> None:
    time_range = TimeRange(MIDNIGHT + 1.4 * HOUR, MIDNIGHT + 4.2 * HOUR)
    slices = RESULT.slices(time_range, MIDNIGHT + 9 * HOUR, size_s)
    stored = RESULT.stored(slices)
    hours = {600: [1, 2, 3, 4, 5], 7_200: [1, 3, 5]}[size_s]
    assert [each.start for each in stored] == [MIDNIGHT + n * HOUR for n in hours[:-1]]
    assert [each.end for each in stored] == [MIDNIGHT + n * HOUR for n in hours[1:]]
    assert all(each.start == RESULT.bucket(each.start) for each in slices)


def test_slices_of_other_results_are_whole_buckets() -> None:
    other: Result = result_of("traffic")
    (first, last) = other.slices(TimeRange(MIDNIGHT, MIDNIGHT + HOUR), MIDNIGHT, 1_800)
    assert (first.start, last.end) == (MIDNIGHT, MIDNIGHT + HOUR)
    assert other.stored([first]) == [first]


def test_hours_whose_first_facts_were_removed_are_not_computed() -> None:
    kept = RESULT.computable([TimeRange(MIDNIGHT - HOUR, MIDNIGHT + 5 * HOUR)], MIDNIGHT)
    assert RESULT.stored(kept) == [TimeRange(MIDNIGHT + HOUR, MIDNIGHT + 5 * HOUR)]
