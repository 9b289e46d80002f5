"""Reading Delta tables without a JVM, and refusing what is no query."""

import gc
import time
import weakref
from datetime import timedelta
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from quotaflow.pipelines.errors import (
    ConfigError,
    DamagedError,
    NeverMadeError,
    QueryError,
    QuotaflowError,
)
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.warehouse import browsing, delta_files
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.query_times import Bounds
from quotaflow.pipelines.warehouse.spark_reader import check_query
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import REQUESTS

from ... import rows as table_rows
from ...cases import cases
from ...delta_tables import NOON, Fill, violation
from ...own_process import printed_by
from ...schemas.views.limit_rows import offenders
from ...schemas.views.view_tables import answered, make_tables_and_answers


def test_columns_come_in_the_declared_order_whatever_the_live_one(
    warehouse: Warehouse, fill: Fill
) -> None:
    fill("requests", [{"event_time": NOON}])
    assert browsing.columns(FolderReader(warehouse), "requests") == REQUESTS.column_names


def test_the_extent_counts_rows_of_every_file_and_finds_the_newest(
    warehouse: Warehouse, fill: Fill
) -> None:
    for seconds in (0, 5, 2):
        fill("quarantine", [{"event_time": NOON + timedelta(seconds=seconds)}])
    extent = FolderReader(warehouse).extents(["quarantine"])["quarantine"]
    newest_us = int(NOON.timestamp() + 5) * 1_000_000
    assert (extent.rows, extent.last_event_time_us) == (3, newest_us)
    assert extent.size_bytes is not None
    assert extent.size_bytes > 0


def test_the_extent_is_that_of_the_rows_where_the_log_lacks_it(
    warehouse: Warehouse, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill("quarantine", [{"event_time": NOON}, {"event_time": None}])
    fill("quarantine", [{"event_time": None}])
    reader = FolderReader(warehouse)
    by_log = reader.extents(["quarantine"])["quarantine"]
    assert by_log.rows == 3
    assert by_log.last_event_time_us == int(NOON.timestamp()) * 1_000_000
    monkeypatch.setattr(delta_files, "recorded_extent", lambda *_: None)
    assert reader.extents(["quarantine"])["quarantine"] == by_log


def test_a_log_without_counts_or_times_has_no_extent(tmp_path: Path) -> None:
    rows = pa.table({"event_time": pa.array([NOON], pa.timestamp("us", "UTC"))})
    unindexed = {"delta.dataSkippingNumIndexedCols": "0"}
    deltalake.write_deltalake(tmp_path, rows, configuration=unindexed)
    table = deltalake.DeltaTable(tmp_path)
    assert delta_files.recorded_extent(table, tmp_path, "event_time") is None


def test_a_table_that_was_never_made_has_no_extent(warehouse: Warehouse) -> None:
    extent = FolderReader(warehouse).extents(["requests"])["requests"]
    assert (extent.rows, extent.last_event_time_us, extent.size_bytes) == (None, None, None)


@cases(
    ("name", "missing", "hint"),
    (
        "its job",
        *("requests", "requests"),
        "`quotaflow run ingest_request_log --once` fills it; or name another place",
    ),
    ("of a view", "current_configs", "configs", "`quotaflow snapshot` fills it"),
    ("not apply", "config_changes", "config_changes", "`quotaflow snapshot` makes it"),
)
def test_a_table_that_was_never_made_is_named_with_what_fills_it(
    warehouse: Warehouse, name: str, missing: str, hint: str
) -> None:
    with pytest.raises(NeverMadeError, match=f"{missing} was never made in ") as raised:
        answered(FolderReader(warehouse), f"SELECT * FROM {name}")
    assert fillers.hint(raised.value.table).startswith(hint)


def test_a_view_brings_its_tables_with_it(warehouse: Warehouse, fill: Fill) -> None:
    fill("configs", [table_rows.config(0, "metrics", "*")])
    rows = answered(FolderReader(warehouse), "SELECT entity_name FROM current_configs")
    assert rows == [{"entity_name": "all"}]


def test_the_view_names_the_worst_row_and_the_first_time(warehouse: Warehouse) -> None:
    worst = violation("User:eve", NOON, throttle_time_ms=9_000, broker_id=2, rate_per_s=20.0)
    rates = [
        violation("User:eve", NOON - timedelta(seconds=5)),
        violation("User:eve", NOON - timedelta(seconds=5), broker_id=3),
        worst,
        violation("User:eve", NOON, is_violating=False, broker_id=3, throttle_time_ms=99_000),
        violation("Group:eve", NOON),
    ]
    content = offenders(["User:eve"], NOON) | {"producer_id_rates": rates}
    make_tables_and_answers(warehouse, content)
    (row,) = answered(FolderReader(warehouse), "SELECT * FROM desired_configs")
    nothing = {name: None for name, value in row.items() if value is None}
    evidence = {each["signal"]: (each["value"], each["unit"]) for each in row.pop("evidence")}
    assert evidence["forecast_bytes"] == (424.0, "bytes")
    assert evidence["throttle_time_ms"] == (9_000.0, "ms")
    assert row == nothing | {
        "cluster_id": "c1",
        "entity_type": "user",
        "entity_name": "eve",
        "config_key": "producer_ids_rate",
        "config_value": "1.5",
        "reason_code": "producer_ids_fill_heap",
        "reason_detail": "producer_per_batch",
        "subject": "User:eve as loop at 10.0.3.0",
        "evidence_table": "producer_id_offenders",
        "evidence_key": "principal=User:eve client_address=10.0.3.0",
        "since": NOON - timedelta(seconds=5),
        "offence": 2.0,
        "priority": 10,
        "renew_only": False,
    }


@cases(
    ("sql", "message"),
    ("table", "SELECT * FROM reqests", r"no table reqests \(did you mean requests"),
    ("column", "SELECT princpal FROM requests", "did you mean principal"),
    ("no SQL", "SELECT (", "syntax error"),
    (
        "fails only while it is read",
        "SELECT CAST(api AS INT) FROM requests",
        "Could not convert string 'FETCH'",
    ),
    ("no files by name", "SELECT * FROM '/etc/hosts'", "no table"),
)
def test_a_query_that_cannot_be_answered_is_one_clear_line(
    warehouse: Warehouse, fill: Fill, sql: str, message: str
) -> None:
    fill("requests", [{"event_time": NOON, "api": "FETCH"}])
    with pytest.raises(QueryError, match=message) as raised:
        answered(FolderReader(warehouse), sql)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/hosts'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/x.csv'",
        "-- SELECT\nDROP TABLE requests",
        "/* SELECT */ DELETE FROM requests",
        "WITH x AS (SELECT 1) INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT * FROM x",
        "WITH x AS (SELECT 1) FROM x INSERT /**/ INTO requests SELECT *",
        "WITH x AS (SELECT 1) DELETE FROM delta.`/w/requests`",
        "with x as (select 1) update delta.`/w/plans` set plan_id = 'x'",
        "WITH x AS (SELECT 1) MERGE INTO plans USING x ON true WHEN MATCHED THEN DELETE",
        "WITH x AS (SELECT '\\') INSERT INTO plans SELECT '",
        "SET spark.x = 1",
        "selected",
        "",
    ],
)
def test_what_is_no_query_is_refused_before_any_engine_sees_it(sql: str) -> None:
    with pytest.raises(ConfigError, match="only queries"):
        check_query(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        " -- why\n/* x */ (SELECT 1)",
        "WITH x AS (SELECT 1) TABLE x",
        "SELECT 'insert into', \"delete from\", `merge into` -- update x set y",
        "SELECT 'it''s \"', insert, last_update FROM x WHERE api = 'delete from'",
    ],
)
def test_queries_pass_whatever_stands_before_them(sql: str) -> None:
    check_query(sql)


def test_a_query_in_another_encoding_is_one_error() -> None:
    as_python_reads_an_argument = b"SELECT '\xe9'".decode("utf-8", "surrogateescape")
    with pytest.raises(ConfigError, match="not UTF-8"):
        check_query(as_python_reads_an_argument)


def test_a_damaged_table_is_an_error_and_no_traceback(warehouse: Warehouse, fill: Fill) -> None:
    fill("requests", [{"event_time": NOON}])
    (next((warehouse.folder("requests") / "_delta_log").glob("*.json"))).write_text("{broken")
    with pytest.raises(QuotaflowError):
        answered(FolderReader(warehouse), "SELECT * FROM requests")


def test_what_is_expected_has_its_version_and_an_error_waits_for_a_query(
    warehouse: Warehouse, fill: Fill
) -> None:
    fill("quarantine", [{"event_time": NOON}])
    fill("configs", [table_rows.config(0, "metrics", "*")])
    (warehouse.folder("configs") / "_delta_log" / f"{0:020}.json").write_text("{")
    reader = FolderReader(warehouse)
    reader.expect(["configs", "quarantine", "requests"])
    deadline = time.monotonic() + 60
    while "quarantine" not in reader._tables._listed.made and time.monotonic() < deadline:
        time.sleep(0.01)
    fill("quarantine", [{"event_time": NOON}])
    assert answered(reader, "SELECT count(*) AS n FROM quarantine") == [{"n": 1}]
    with pytest.raises(DamagedError):
        answered(reader, "SELECT * FROM configs")


def test_a_small_file_of_many_values_is_read_for_each_query(
    warehouse: Warehouse, fill: Fill
) -> None:
    """To read all columns at once takes longer than to read a few of them several times."""
    parts = []
    for rows in (1, 50_000):
        fill("quarantine", [{"event_time": NOON}] * rows)
        parts.append(FolderReader(warehouse)._tables.part("quarantine", Bounds()))
    assert [part.is_small for part in parts] == [True, False]


def test_a_process_that_read_a_table_ends_by_itself(warehouse: Warehouse, fill: Fill) -> None:
    fill("requests", [{"event_time": NOON}])
    code = (
        "from quotaflow.pipelines import config\n"
        "from quotaflow.pipelines.warehouse import folder_reader, warehouse\n"
        f"w = warehouse.Warehouse(config.WarehouseSection(path={str(warehouse.conf.folder)!r}))\n"
        "folder_reader.FolderReader(w).query('SELECT * FROM requests').read_all()\n"
    )
    assert printed_by(code, timeout=120) == ""


def test_a_with_may_bear_the_name_of_a_table_that_was_never_made(warehouse: Warehouse) -> None:
    rows = answered(
        FolderReader(warehouse), "WITH brokers AS (SELECT 1 AS n) SELECT n FROM brokers"
    )
    assert rows == [{"n": 1}]


def test_a_reader_ends_with_its_last_user_although_a_query_failed(
    warehouse: Warehouse, fill: Fill
) -> None:
    fill("requests", [{"event_time": NOON}])
    gc.disable()
    try:
        reader = FolderReader(warehouse)
        with pytest.raises(QuotaflowError, match="no_such_column"):
            reader.rows("SELECT no_such_column FROM requests")
        seen = weakref.ref(reader)
        del reader
        assert seen() is None
    finally:
        gc.enable()
