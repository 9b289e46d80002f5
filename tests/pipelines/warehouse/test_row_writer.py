"""Rows that delta-rs writes: replaced by range and scope, appended once, readable by all."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.row_writer import AppId, Replaced
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import DATE, LONG, STRING, TIMESTAMP, Column, Table

from ...cases import cases
from ...own_process import holding
from ...schemas.views.view_tables import no_session

TABLE = Table(
    name="counts",
    comment="Counts",
    columns=(
        Column("event_date", DATE, "UTC date"),
        Column("event_time", TIMESTAMP, "minute"),
        Column("owner", STRING, "whose"),
        Column("n", LONG, "how many"),
    ),
    key=("event_time", "owner"),
    time="event_time",
    partitioning=("event_date",),
)
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
Row = tuple[float, str, int]
FEATURE = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["fromTheFuture"]}
CONSTRAINTS = {"minReaderVersion": 1, "minWriterVersion": 3}


def at(minute: float) -> datetime:
    """Minutes from midnight; those before it are in another partition."""
    return MIDNIGHT + minute * MINUTE


def between(start: float, end: float | None = None) -> TimeRange:
    return TimeRange(at(start), None if end is None else at(end))


def arrow(rows: Iterable[Row]) -> pa.Table:
    named = [
        {"event_date": at(minute).date(), "event_time": at(minute), "owner": owner, "n": n}
        for minute, owner, n in rows
    ]
    return pa.Table.from_pylist(named, schema=TABLE.arrow)


def make(warehouse: Warehouse, table: Table = TABLE, **columns: pa.DataType) -> Path:
    """The table as Spark creates it, with further columns."""
    schema = pa.schema([*table.arrow, *(pa.field(name, kind) for name, kind in columns.items())])
    folder = warehouse.folder(table.name)
    properties = {"delta.dataSkippingStatsColumns": "event_time,owner"}
    DeltaTable.create(folder, schema, partition_by=["event_date"], configuration=properties)
    return folder


@pytest.fixture
def folder(warehouse: Warehouse) -> Path:
    """The table's folder; the table is empty."""
    return make(warehouse)


def replace(warehouse: Warehouse, rows: Iterable[Row], old: Replaced) -> None:
    row_writer.replace(no_session, warehouse, TABLE, arrow(rows), old)


def append(warehouse: Warehouse, rows: Iterable[Row], version: int, name: str = "query") -> None:
    app = AppId(name, version, f"{name} {version}")
    row_writer.append(no_session, warehouse, TABLE, arrow(rows), app)


def content(folder: Path) -> list[Row]:
    rows = DeltaTable(folder).to_pyarrow_table().to_pylist()
    return sorted(((r["event_time"] - MIDNIGHT) / MINUTE, r["owner"], r["n"]) for r in rows)


OLD: list[Row] = [(-3, "a", 1), (-1, "a", 2), (-1, "b", 3), (1, "a", 4), (1, "b", 5), (7, "a", 6)]
OF_A, OF_QUOTED = "owner = 'a'", "owner = 'it''s \"a\"; -- '"


@cases(
    ("old", "new", "expected"),
    (
        "a range over midnight, whose end is not in it",
        Replaced([between(-1, 1)]),
        [(0, "c", 9)],
        [OLD[0], (0, "c", 9), OLD[3], OLD[4], OLD[5]],
    ),
    (
        "two ranges, one without an end",
        Replaced([between(-3, -2), between(7)]),
        [(8, "c", 9)],
        [*OLD[1:5], (8, "c", 9)],
    ),
    ("all time of a scope", Replaced([EVER], OF_A), [(7, "a", 9)], [OLD[2], OLD[4], (7, "a", 9)]),
    ("all rows", Replaced(None), [(8, "c", 9)], [(8, "c", 9)]),
    ("all rows of a scope", Replaced(None, OF_A), [], [OLD[2], OLD[4]]),
    ("by no rows", Replaced([between(1, 2)], OF_A), [], [*OLD[:3], *OLD[4:]]),
    ("nothing by nothing", Replaced([between(2, 7)]), [], OLD),
    (
        "a scope with quotes",
        Replaced([between(2, 7)], OF_QUOTED),
        [(3, 'it\'s "a"; -- ', 9)],
        sorted([*OLD, (3, 'it\'s "a"; -- ', 9)]),
    ),
)
def test_exactly_the_rows_of_ranges_and_scope_are_replaced(
    warehouse: Warehouse,
    folder: Path,
    old: Replaced,
    new: list[Row],
    expected: list[Row],
) -> None:
    append(warehouse, OLD, 0)
    for _ in range(2):
        replace(warehouse, new, old)
        assert content(folder) == expected


def test_a_range_is_exact_to_the_microsecond(warehouse: Warehouse, folder: Path) -> None:
    tick = 1 / 60_000_000
    append(warehouse, [(5 - tick, "before", 1), (5, "first", 2), (6 - tick, "last", 3)], 0)
    append(warehouse, [(6, "after", 4)], 1)
    replace(warehouse, [], Replaced([between(5, 6)]))
    assert [owner for _, owner, _ in content(folder)] == ["before", "after"]
    replace(warehouse, [], Replaced([between(5 - tick, 5)]))
    assert [owner for _, owner, _ in content(folder)] == ["after"]


@pytest.mark.parametrize("year", [1970, 2262, 2263, 9999])
def test_a_wrong_clock_is_a_range_like_others(
    warehouse: Warehouse, folder: Path, year: int
) -> None:
    far = (datetime(year, 12, 30, tzinfo=UTC) - MIDNIGHT) / MINUTE
    append(warehouse, [(far, "a", 1), (0, "a", 2)], 0)
    replace(warehouse, [(far, "a", 3)], Replaced([between(far, far + 1)]))
    assert sorted(n for _, _, n in content(folder)) == [2, 3]


def test_an_empty_result_over_an_empty_range_is_no_commit(
    warehouse: Warehouse, folder: Path
) -> None:
    replace(warehouse, [], Replaced([between(0, 1)]))
    append(warehouse, OLD, 0)
    before = DeltaTable(folder).version()
    replace(warehouse, [], Replaced([between(7.5, 9), between(20)]))
    assert DeltaTable(folder).version() == before == 1


def test_a_row_outside_of_what_is_replaced_is_refused(warehouse: Warehouse, folder: Path) -> None:
    append(warehouse, OLD, 0)
    with pytest.raises(JobError, match=r"counts: cannot write: .*1 rows failed validation check"):
        replace(warehouse, [(5, "c", 1)], Replaced([between(0, 5)]))
    assert content(folder) == OLD


def test_a_batch_is_appended_once(warehouse: Warehouse, folder: Path) -> None:
    rows: list[Row] = [(0, "a", 1)]
    append(warehouse, rows, 4)
    table_version = DeltaTable(folder).version()
    for replayed in (4, 3):
        append(warehouse, rows, replayed)
        assert (content(folder), DeltaTable(folder).version()) == (rows, table_version)
    append(warehouse, rows, 5)
    append(warehouse, rows, 0, "another query")
    assert content(folder) == rows * 3
    assert DeltaTable(folder).history(1)[0]["userMetadata"] == "another query 0"


def test_a_batch_replaces_once(warehouse: Warehouse, folder: Path) -> None:
    for version, row in ((0, OLD[0]), (1, OLD[1]), (1, OLD[2]), (0, OLD[3])):
        app = AppId("query", version, f"query {version}")
        row_writer.replace(no_session, warehouse, TABLE, arrow([row]), Replaced(None), app=app)
    assert content(folder) == [OLD[1]]


@pytest.mark.faults
def test_a_checkpoint_of_the_log_keeps_which_batches_were_appended(
    warehouse: Warehouse, folder: Path
) -> None:
    append(warehouse, OLD[:1], 7, "old query")
    for version in range(100):
        append(warehouse, OLD[:1], version)
    assert list((folder / "_delta_log").glob("*.checkpoint.parquet"))
    append(warehouse, OLD[:1], 7, "old query")
    append(warehouse, OLD[:1], 99)
    assert len(content(folder)) == 101


def test_the_checksum_of_a_file_that_delta_rs_replaces_does_not_stay(
    warehouse: Warehouse, folder: Path
) -> None:
    """Spark waits for a `_last_checkpoint` that fits its checksum, 3 s for each table."""
    checksum = folder / "_delta_log" / "._last_checkpoint.crc"
    checksum.write_bytes(b"crc\0 of what Spark wrote")
    append(warehouse, OLD, 0)
    assert not checksum.exists()


@pytest.mark.parametrize("write", ["replace", "append"])
def test_a_column_that_was_renamed_is_null_in_new_rows(warehouse: Warehouse, write: str) -> None:
    folder = make(
        warehouse, old_n=pa.int64(), old_list=pa.list_(pa.struct([("topic", pa.string())]))
    )
    if write == "append":
        append(warehouse, OLD[:1], 0)
    else:
        replace(warehouse, OLD[:1], Replaced([EVER]))
    (row,) = DeltaTable(folder).to_pyarrow_table().to_pylist()
    assert (row["n"], row["old_n"], row["old_list"]) == (1, None, None)


def test_columns_are_written_by_name(warehouse: Warehouse, folder: Path) -> None:
    rows = arrow(OLD).select(["n", "owner", "event_time", "event_date"])
    row_writer.replace(no_session, warehouse, TABLE, rows, Replaced([EVER]))
    assert content(folder) == OLD


def test_a_row_without_its_time_is_refused(warehouse: Warehouse, folder: Path) -> None:
    rows = pa.Table.from_pylist([{"owner": "a"}, {"event_time": MIDNIGHT}], schema=TABLE.arrow)
    with pytest.raises(ValueError, match="counts: no event_time in 1 row"):
        row_writer.replace(no_session, warehouse, TABLE, rows, Replaced([EVER]))
    assert DeltaTable(folder).version() == 0


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_times_are_microseconds_of_utc(warehouse: Warehouse, folder: Path, unit: str) -> None:
    """From others delta-rs would add features that Spark cannot read."""
    other = pa.field("event_time", pa.timestamp(unit, tz="Asia/Tokyo"))
    rows = arrow(OLD).cast(TABLE.arrow.set(1, other))
    row_writer.replace(no_session, warehouse, TABLE, rows, Replaced([EVER]))
    assert content(folder) == OLD
    live = DeltaTable(folder)
    assert {field.name: str(field.type) for field in live.schema().fields}["event_time"] == (
        'PrimitiveType("timestamp")'
    )
    protocol = live.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_files_have_the_statistics_that_readers_skip_by(warehouse: Warehouse, folder: Path) -> None:
    append(warehouse, OLD, 0)
    replace(warehouse, [(1, "c", 7), (2, "d", 8)], Replaced([between(1, 3)]))
    added = pa.table(DeltaTable(folder).get_add_actions(flatten=True)).to_pylist()
    by_date: dict[Any, Any] = {}
    for file in added:
        by_date.setdefault(file["partition.event_date"].day, []).append(file)
    assert sum(file["num_records"] for file in added) == len(content(folder))
    for day, first, last in ((21, -3, -1), (22, 1, 7)):
        assert min(file["min.event_time"] for file in by_date[day]) == at(first)
        assert max(file["max.event_time"] for file in by_date[day]) == at(last)
        assert all(file["null_count.event_time"] == 0 for file in by_date[day])
        assert all("min.n" not in file for file in by_date[day])


def test_two_threads_write_one_table(warehouse: Warehouse, folder: Path) -> None:
    append(warehouse, [(minute, owner, -1) for minute in range(10) for owner in "abc"], 0)

    def write(owner: str) -> None:
        old = Replaced([between(0, 10)], f"owner = '{owner}'")
        for number in range(8):
            replace(warehouse, [(minute, owner, number) for minute in range(10)], old)
            append(warehouse, [(20 + number, owner, number)], number, owner)
            append(warehouse, [(20 + number, owner, number)], number, owner)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, "abc"))
    replaced = [(minute, owner, 7) for minute in range(10) for owner in "abc"]
    appended = [(20 + number, owner, number) for number in range(8) for owner in "abc"]
    assert content(folder) == [*replaced, *appended]


def test_a_process_waits_for_another_one(warehouse: Warehouse, folder: Path) -> None:
    """Behind Spark Connect each query writes in a process of its own."""
    lock = folder / "_delta_log" / ".writer.lock"
    code = (
        "import fcntl, sys\n"
        f"file = open({str(lock)!r}, 'a')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with holding(code) as other, ThreadPoolExecutor(1) as pool:
        written = pool.submit(append, warehouse, OLD, 0)
        with pytest.raises(TimeoutError):
            written.result(timeout=0.3)
        other.kill()
        written.result(timeout=30)
    assert content(folder) == OLD


@pytest.mark.parametrize("protocol", [FEATURE, CONSTRAINTS], ids=["a feature", "constraints"])
@pytest.mark.parametrize("kind", ["replace", "append"])
def test_a_table_with_a_feature_that_delta_rs_lacks_is_written_by_spark(
    warehouse: Warehouse,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    protocol: dict[str, Any],
) -> None:
    (folder / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}))
    writer = Recorded()
    monkeypatch.setattr(frames, "from_arrow", lambda *_: writer)
    monkeypatch.setitem(globals(), "no_session", lambda: None)
    rows = OLD[:1]
    if kind == "append":
        append(warehouse, rows, 3)
        options = {"txnAppId": "query", "txnVersion": 3, "userMetadata": "query 3"}
    else:
        replace(warehouse, rows, Replaced([between(-3, -2)], OF_A))
        times = between(-3, -2)
        where = f"{times.date_condition('event_date')} AND {times.condition('event_time')}"
        options = {"replaceWhere": f"({OF_A}) AND ((({where})))"}
    mode = "append" if kind == "append" else "overwrite"
    chosen = [("option", *pair) for pair in options.items()]
    saved = ("save", str(folder))
    assert writer.calls == [("format", "delta"), ("mode", mode), *chosen, saved]


class Recorded:
    """In place of a frame of Spark and of its writer: what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    @property
    def write(self) -> "Recorded":
        return self

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    def save(self, path: str) -> None:
        self._call("save", path)

    def _call(self, *call: Any) -> "Recorded":
        self.calls.append(call)
        return self


def test_an_error_of_delta_rs_names_the_table(
    warehouse: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("Generic LocalFileSystem error: No space left on device (os error 28)")

    monkeypatch.setattr(deltalake, "write_deltalake", full)
    with pytest.raises(JobError, match="counts: cannot write: no space left on device: free some"):
        append(warehouse, OLD, 0)
    monkeypatch.undo()
    write_deltalake(folder, arrow(OLD), mode="append")
    append(warehouse, OLD, 0)
    assert len(content(folder)) == 2 * len(OLD)
