"""Small files become few, with the same rows, beside writers that append and replace."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.jobs.regular_joins import JOIN_EVERY_S
from quotaflow.pipelines.warehouse import delta_files, row_writer
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.small_files import TARGET_BYTES, SmallFiles, groups
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...delta_tables import NOON, Fill

MEMORY_MB = 256
BATCHES_A_DAY, BATCHES_A_JOIN = 24 * 60, JOIN_EVERY_S // 60
MINUTE = timedelta(minutes=1)


def row(minute: int) -> dict[str, Any]:
    at = NOON + minute * MINUTE
    return {"cluster_id": "c", "event_time": at, "event_date": at.date(), "api": f"A{minute}"}


def rows(warehouse: Warehouse, name: str) -> list[str]:
    return sorted(map(str, FolderReader(warehouse).rows(f"SELECT * FROM {name}")))


def files(warehouse: Warehouse, name: str) -> list[DataFile]:
    place = warehouse.place
    return delta_files.of_version(place.open(name), place.path(name), "event_time")


def join(warehouse: Warehouse, name: str, before: date | None = None) -> int:
    return SmallFiles(warehouse, TABLES[name], MEMORY_MB, 2**20).join(Event(), before)


def no_session() -> Any:
    raise AssertionError("a folder needs no session")


@pytest.fixture
def filled(warehouse: Warehouse, fill: Fill) -> Warehouse:
    """Four files of requests, and four of traffic on two days."""
    warehouse.ensure(no_session, [TABLES["requests"], TABLES["traffic"]])
    for minute in (0, 1, 24 * 60, 24 * 60 + 1):
        fill("requests", [row(minute)])
        fill("traffic", [row(minute)])
    return warehouse


@pytest.mark.parametrize(("name", "left"), [("requests", 1), ("traffic", 2)])
def test_joined_files_have_the_same_rows_and_bounds_of_their_times(
    filled: Warehouse, name: str, left: int
) -> None:
    before, times = rows(filled, name), sorted(file.first for file in files(filled, name))
    assert join(filled, name) == 4
    after = files(filled, name)
    assert len(after) == left
    assert min(file.first for file in after) == times[0]
    assert max(file.last for file in after) - timedelta(milliseconds=1) == times[-1]
    assert rows(filled, name) == before
    assert join(filled, name) == 0


def test_of_a_day_that_goes_on_nothing_is_joined_if_so_asked(filled: Warehouse) -> None:
    assert join(filled, "traffic", NOON.date() + timedelta(days=1)) == 2
    assert len(files(filled, "traffic")) == 3


def test_a_join_is_no_change_for_those_who_read_what_is_appended(filled: Warehouse) -> None:
    version = filled.place.open("requests").version()
    join(filled, "requests")
    (_, text), *others = filled.place.commits("requests", version + 1)
    assert not others
    assert '"dataChange":false' in text
    assert '"dataChange":true' not in text


def test_streams_that_begin_later_read_joined_rows_before_newer_ones(
    filled: Warehouse, fill: Fill
) -> None:
    def written() -> dict[str, Any]:
        actions = filled.place.open("requests").get_add_actions()
        rows = pa.RecordBatchReader.from_stream(actions).read_all().to_pylist()
        return {row["path"]: row["modification_time"] for row in rows}

    newest = max(written().values())
    assert join(filled, "requests") == 4
    fill("requests", [row(24 * 60 + 2)])
    assert min(written().values()) == newest


def test_a_join_that_is_stopped_leaves_the_table_as_it_is(filled: Warehouse) -> None:
    stopped = Event()
    stopped.set()
    version = filled.place.open("requests").version()
    assert SmallFiles(filled, TABLES["requests"], MEMORY_MB).join(stopped) == 0
    assert filled.place.open("requests").version() == version


def test_a_file_that_another_writer_took_away_is_not_brought_back(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, rewrite = TABLES["traffic"], row_writer.rewrite
    minute = TimeRange(NOON, NOON + MINUTE)

    def replace_first(*arguments: Any) -> bool:
        row_writer.replace(no_session, filled, table, table.arrow.empty_table(), Replaced([minute]))
        monkeypatch.setattr(row_writer, "rewrite", rewrite)
        return rewrite(*arguments)

    monkeypatch.setattr(row_writer, "rewrite", replace_first)
    before = rows(filled, "traffic")
    assert join(filled, "traffic") == 2, "the day of the other two files"
    after = set(rows(filled, "traffic"))
    assert after < set(before)
    assert len(after) == len(before) - 1


def test_appends_and_replacements_beside_joins_lose_and_repeat_no_row(filled: Warehouse) -> None:
    requests, traffic = TABLES["requests"], TABLES["traffic"]

    def append(first: int) -> None:
        for minute in range(first, first + 12):
            content = pa.Table.from_pylist([row(minute)], requests.arrow)
            row_writer.append(no_session, filled, requests, content)

    def replace() -> None:
        old = Replaced([TimeRange(NOON, NOON + MINUTE)])
        for _ in range(12):
            content = pa.Table.from_pylist([row(0)], traffic.arrow)
            row_writer.replace(no_session, filled, traffic, content, old)

    before = {name: rows(filled, name) for name in ("requests", "traffic")}
    done = Event()

    def joins() -> int:
        joined = 0
        while not done.is_set():
            joined += sum(join(filled, name) for name in before)
        return joined

    with ThreadPoolExecutor(4) as pool:
        joining = pool.submit(joins)
        try:
            for writing in [
                pool.submit(append, 100),
                pool.submit(append, 200),
                pool.submit(replace),
            ]:
                writing.result()
        finally:
            done.set()
        assert joining.result() > 0
    assert rows(filled, "traffic") == before["traffic"]
    assert len(rows(filled, "requests")) == len(set(rows(filled, "requests"))) == 4 + 24
    assert set(before["requests"]) < set(rows(filled, "requests"))


@given(st.lists(st.integers(1, TARGET_BYTES), max_size=60))
def test_groups_are_next_to_each_other_and_no_larger_than_the_target(sizes: list[int]) -> None:
    listed = [
        DataFile(str(n), None, NOON + n * MINUTE, NOON + n * MINUTE, size)
        for n, size in enumerate(sizes)
    ]
    for group in groups(listed, 2**40):
        places = [int(file.path) for file in group]
        assert places == list(range(places[0], places[-1] + 1))
        assert len(group) > 1
        assert sum(file.size_bytes for file in group) <= TARGET_BYTES


@cases(
    ("files", "mb"),
    ("few lines", 1, 0.01),
    ("200 lines/s", 1, 1),
    ("10,000 lines/s, a file a batch", 1, 36),
    ("10,000 lines/s, a file a task", 12, 3),
)
def test_through_a_day_of_a_batch_each_minute_a_table_has_few_files_each_written_few_times(
    files: int, mb: float
) -> None:
    size, written, listed = int(mb * 2**20), 0, list[DataFile]()
    for minute in range(BATCHES_A_DAY):
        at = NOON + minute * MINUTE
        listed += [DataFile(f"{minute} {n}", None, at, at, size) for n in range(files)]
        for group in groups(listed) if minute % BATCHES_A_JOIN == 0 else ():
            joined = sum(file.size_bytes for file in group)
            listed = [file for file in listed if file not in group]
            listed.append(DataFile(group[0].path, None, group[0].first, at, joined))
            written += joined
        assert len(listed) <= 100
    assert written <= 4 * BATCHES_A_DAY * files * size
