"""The database that answers queries: locked, bounded, and exact about what files contain."""

import gc
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import QueryError, QuotaflowError
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CLIENT_METRICS

from ...delta_tables import NOON, Fill
from ...rows import LONG_AGO
from ...schemas.views.view_tables import answered
from .test_query_check import NO_QUERIES


def contents(folder: Path) -> dict[str, str]:
    """A checksum of each file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def reader(warehouse: Warehouse, fill: Fill) -> FolderReader:
    fill("requests", [{"event_time": NOON, "api": "FETCH"}])
    return FolderReader(warehouse)


def test_no_statement_changes_a_file_or_a_setting(
    reader: FolderReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "x.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(tmp_path / "home")
    folder = reader.warehouse.folder("requests")
    file = next(folder.glob("**/*.parquet"))
    before = contents(tmp_path)
    attacks = [
        *NO_QUERIES,
        *(f"COPY (SELECT 1) TO '{place}'" for place in (file, folder / "x", "x.csv", "/dev/null")),
        f"COPY (SELECT * FROM requests) TO '{file}' (FORMAT parquet, use_tmp_file false)",
        *(f"SELECT * FROM {read}('{file}')" for read in ("read_blob", "read_parquet", "read_text")),
        *(f"SELECT * FROM '{place}'" for place in (file, "x.csv", "x.*", "/etc/passwd")),
        f"SELECT * FROM '{folder}/_delta_log/{0:020}.json'",
        f"ATTACH '{tmp_path}/home/x.db'",
    ]
    for sql in attacks:
        with pytest.raises(QuotaflowError):
            answered(reader, sql)
    assert contents(tmp_path) == before
    assert answered(reader, "SELECT api FROM requests") == [{"api": "FETCH"}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO 'attack.csv'",
        "INSTALL httpfs FROM 'http://127.0.0.1:1'",
        "ATTACH 'attack.db' AS x",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET allowed_directories = ['/']",
        "SET temp_directory = '/etc'",
    ],
)
def test_the_engine_refuses_too_what_the_check_refuses(
    reader: FolderReader, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answered(reader, "SELECT * FROM requests")
    with pytest.raises(duckdb.Error):
        reader._database.read(sql, {}).read_all()
    assert list(tmp_path.glob("attack*")) == []


def test_a_variable_of_python_is_no_table(reader: FolderReader) -> None:
    requests_in_python = pa.table({"a": [1]})
    with pytest.raises(QuotaflowError):
        answered(reader, "SELECT * FROM requests_in_python")
    with pytest.raises(duckdb.Error):
        reader._database.read("SELECT * FROM requests_in_python", {})
    assert requests_in_python.num_rows == 1


def limited(warehouse: Warehouse, **bounds: int) -> FolderReader:
    section = config.WarehouseSection(path=str(warehouse.conf.folder), **bounds)
    return FolderReader(Warehouse(section))


def test_a_query_that_takes_too_long_is_stopped(reader: FolderReader) -> None:
    quick = limited(reader.warehouse, query_timeout_s=1)
    endless = "SELECT sum(a.range * b.range) AS s FROM range(10000000) a, range(10000000) b"
    with pytest.raises(QueryError, match=r"stopped after 1 s: .* warehouse.query_timeout_s="):
        answered(quick, endless)
    assert answered(quick, "SELECT 1 AS n") == [{"n": 1}]


def test_a_query_ends_when_another_thread_stops_the_reader(reader: FolderReader) -> None:
    # Of more than a batch, so that it runs when its first rows are there, and takes hours.
    endless = "SELECT a.range AS n FROM range(10000000) a, range(10000000) b"
    batches = reader.query(endless)
    batches.read_next_batch()
    stopper = threading.Thread(target=reader.stop)
    stopper.start()
    with pytest.raises(QueryError), engine_errors(endless):
        for _ in batches:
            pass
    stopper.join()
    with pytest.raises(QueryError, match="stopped"):
        answered(reader, "SELECT 1 AS n")


def test_a_reader_that_was_stopped_asks_nothing_of_another_time(reader: FolderReader) -> None:
    reader.stop()
    with pytest.raises(QueryError, match="stopped"):
        reader.query("SELECT 1 FROM client_answers", Since(NOON, NOON))


def test_a_query_that_needs_too_much_memory_is_an_error(reader: FolderReader) -> None:
    small = limited(reader.warehouse, query_memory_mb=256)
    with pytest.raises(QueryError, match=r"(?i)memory"):
        answered(small, "SELECT len(list(range)) AS n FROM range(100000000)")


def test_what_exceeds_the_memory_goes_to_disk_and_is_removed(reader: FolderReader) -> None:
    small = limited(reader.warehouse, query_memory_mb=256)
    distinct = "SELECT DISTINCT range, md5(range::VARCHAR) FROM range(4000000)"
    assert answered(small, f"SELECT count(*) AS n FROM ({distinct})") == [{"n": 4_000_000}]
    scratch = Path(small._database._scratch)
    assert scratch.is_dir()
    del small
    gc.collect()
    assert not scratch.exists()


def test_what_there_is_can_be_asked(reader: FolderReader) -> None:
    (row,) = answered(
        reader, "SELECT column_type FROM (DESCRIBE requests) WHERE column_name = 'event_time'"
    )
    assert row == {"column_type": "TIMESTAMP WITH TIME ZONE"}
    assert {"name": "requests"} in answered(reader, "SHOW TABLES")
    named = "SELECT table_type FROM information_schema.tables WHERE table_name = 'requests'"
    assert answered(reader, named) == [{"table_type": "BASE TABLE"}]
    (row,) = answered(reader, "SELECT column_name, max FROM (SUMMARIZE SELECT api FROM requests)")
    assert row == {"column_name": "api", "max": "FETCH"}
    (row,) = answered(reader, "EXPLAIN SELECT * FROM requests")
    assert row["explain_value"]


def test_types_are_those_of_json_and_spark(reader: FolderReader) -> None:
    sql = (
        "SELECT sum(broker_id) AS whole, 1.5 AS decimal, 3000000000 * 3 AS large, "
        "date_trunc('hour', max(event_time)) AS hour, TIMESTAMP '2026-11-21 12:00:00' AS plain, "
        "max(event_time) - TIMESTAMPTZ '2026-11-20 10:29:59.5Z' AS long, "
        "INTERVAL '14 months -3 seconds' AS odd, CAST(NULL AS INTERVAL) AS none FROM requests"
    )
    (row,) = answered(reader, sql)
    assert [row] == reader.rows(sql)
    assert row == {
        "whole": None,
        "decimal": 1.5,
        "large": 9_000_000_000,
        "hour": NOON,
        "plain": NOON,
        "long": "1 day 01:30:00.5",
        "odd": "14 months -00:00:03",
        "none": None,
    }
    too_large = "SELECT sum(x) AS s FROM (VALUES (9223372036854775807), (1)) AS t (x)"
    with pytest.raises(QueryError, match=r"(?i)integer|INT64"):
        answered(reader, too_large)
    assert reader.rows(too_large) == [{"s": 2**63}]


def test_rows_have_the_values_of_arrow_whatever_their_types(reader: FolderReader) -> None:
    sql = """
    SELECT 'a' AS text, true AS truth, 1.5e0 AS number, NULL AS nothing, 'b'::BLOB AS bytes,
        DATE '2026-11-21' AS day, [1, NULL] AS listed, {'a': 1, 'b': ['c']} AS parts,
        map {'k': 'v'} AS named, [{'n': map {'k': 1}}] AS nested, 1.50 AS decimal,
        [TIMESTAMPTZ '2026-11-21 12:00:00Z'] AS times, TIME '12:00:00' AS clock
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    """
    assert reader.rows(sql) == rows_of(reader.query(sql).read_all())
    (row,) = reader.rows(
        "SELECT make_timestamptz(9000000000000000000) AS far, "
        "make_timestamptz(-9000000000000000000) AS ago, TIMESTAMPTZ 'infinity' AS never"
    )
    assert row == {"far": None, "ago": None, "never": None}
    assert reader.rows("SELECT 1 AS n WHERE false") == []


def test_a_condition_leaves_not_a_number_out_however_files_are_written(
    warehouse: Warehouse, fill: Fill
) -> None:
    """Bounds of a file may leave NaN out: then a condition that they all meet is no shortcut."""
    fill("client_metrics", [{"event_time": NOON, "value": v} for v in (50.0, float("nan"), 80.0)])
    reader = FolderReader(warehouse)
    for condition in ("value BETWEEN 0 AND 1e300", "value < 100", "NOT value > 100", "value <= 80"):
        rows = answered(
            reader, f"SELECT value FROM client_metrics WHERE {condition} ORDER BY value"
        )
        assert rows == [{"value": 50.0}, {"value": 80.0}], condition


def test_times_of_both_types_of_files_are_the_same(warehouse: Warehouse, fill: Fill) -> None:
    """Files of old releases have times without a zone, those of delta-rs with one."""
    fill("client_metrics", [{"event_time": NOON}])
    folder = warehouse.folder("client_metrics")
    rows = pa.Table.from_pylist([{"event_time": NOON + timedelta(1)}], CLIENT_METRICS.arrow)
    write_deltalake(folder, rows, mode="append")
    newest = max(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    parquet.write_table(rows, newest, use_deprecated_int96_timestamps=True)
    sql = "SELECT event_time FROM client_metrics WHERE event_time >= {} ORDER BY 1"
    reader = FolderReader(warehouse)
    both = [{"event_time": NOON}, {"event_time": NOON + timedelta(1)}]
    assert answered(reader, sql.format("timestamp '2026-11-21T12:00:00Z'")) == both
    assert answered(reader, sql.format("timestamp '2026-11-21T12:00:01Z'")) == both[1:]


def test_a_column_that_a_table_does_not_have_yet_is_null(warehouse: Warehouse) -> None:
    folder = warehouse.folder("client_metrics")
    older = CLIENT_METRICS.arrow.remove(CLIENT_METRICS.column_names.index("unit"))
    rows = pa.Table.from_pylist([{"event_time": NOON, "metric": "x"}], older)
    write_deltalake(folder, rows)
    sql = "SELECT metric, unit FROM client_metrics"
    assert answered(FolderReader(warehouse), sql) == [{"metric": "x", "unit": None}]


def test_a_table_keeps_its_version_while_a_reader_is_open(reader: FolderReader, fill: Fill) -> None:
    assert answered(reader, "SELECT count(*) AS n FROM requests") == [{"n": 1}]
    fill("requests", [{"event_time": NOON}])
    assert answered(reader, "SELECT count(*) AS n FROM requests") == [{"n": 1}]
    assert answered(FolderReader(reader.warehouse), "SELECT count(*) AS n FROM requests") == [
        {"n": 2}
    ]


def test_the_rows_of_one_reader_can_be_read_by_turns(reader: FolderReader) -> None:
    one = reader.query("SELECT range AS n FROM range(200000)")
    other = reader.query("SELECT range AS n FROM range(5)")
    assert one.read_next_batch().num_rows
    assert other.read_all().num_rows == 5
    assert one.read_all().num_rows > 100_000


def test_files_of_other_times_stay_closed(reader: FolderReader, fill: Fill) -> None:
    (old,) = reader.warehouse.folder("requests").glob("*.parquet")
    late = NOON + timedelta(days=2)
    fill("requests", [{"event_time": late, "principal": "User:alice", "error_code": 0}])
    old.write_bytes(b"not read")
    bounded = f"SELECT principal FROM requests WHERE event_time >= '{late - timedelta(hours=1)}'"
    assert answered(reader, bounded) == [{"principal": "User:alice"}]
    # As its text says nothing of a time, the view has that which the caller asks about.
    of_view = "SELECT principal FROM client_answers"
    since = Since(late - timedelta(hours=1), LONG_AGO)
    assert reader.query(of_view, since).read_all().to_pylist() == [{"principal": "User:alice"}]
    for whole in ("SELECT principal FROM requests", of_view):
        with pytest.raises(QuotaflowError, match="is cut to 8 of"):
            answered(reader, whole)


def test_a_query_waits_for_no_table_that_another_one_opens(
    reader: FolderReader, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("quarantine", [{"event_time": NOON}])
    opening, answered_other, opened = threading.Event(), threading.Event(), list[str]()
    opens = Place.open

    def slow(place: Place, table: str) -> DeltaTable:
        opened.append(table)
        if table == "requests":
            opening.set()
            assert answered_other.wait(10)
        return opens(place, table)

    monkeypatch.setattr(Place, "open", slow)
    sql = "SELECT count(*) AS n FROM {}"
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(reader.rows, sql.format("requests")) for _ in range(2)]
        assert opening.wait(10)
        assert reader.rows(sql.format("quarantine"), Since(NOON, NOON)) == [{"n": 1}]
        answered_other.set()
        assert [each.result() for each in both] == [[{"n": 1}]] * 2
    assert sorted(opened) == ["quarantine", "requests"]


def test_views_since_a_time_have_no_earlier_row_and_tables_have_all(
    reader: FolderReader, fill: Fill
) -> None:
    late = NOON + timedelta(days=2)
    # In one file with rows before the time.
    fill("requests", [{"event_time": NOON}, {"event_time": late}])
    sql = "SELECT count(*) AS n FROM client_answers UNION ALL SELECT count(*) FROM requests"
    assert answered(reader, sql) == [{"n": 3}, {"n": 3}]
    assert reader.query(sql, Since(late, late)).read_all().to_pylist() == [{"n": 1}, {"n": 3}]
    # The bounds of a query are not those of its views.
    bounded = f"{sql} WHERE event_time >= '{late}'"
    assert answered(reader, bounded) == [{"n": 3}, {"n": 1}]
