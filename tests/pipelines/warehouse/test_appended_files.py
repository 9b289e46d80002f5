"""Files that tasks write, and the driver commits: once, and with bounds that skip no row."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.row_writer import AppId
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import ddl
from quotaflow.schemas.table import DOUBLE, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs import table_files
from quotaflow.udfs.table_files import TableFile, Target

from ...schemas.views.view_tables import no_session

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
TABLE = Table(
    name="counts",
    comment="Counts",
    columns=(
        Column("event_time", TIMESTAMP, "when"),
        Column("owner", STRING, "whose"),
        Column("n", LONG, "how many"),
        Column("took_ms", DOUBLE, "how long"),
    ),
    key=("event_time", "owner", "n"),
    time="event_time",
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(WarehouseSection(path=str(tmp_path)))
    warehouse.ensure(no_session, [TABLE, REQUESTS])
    return warehouse


def target(warehouse: Warehouse, table: Table = TABLE) -> Target:
    indexed = ddl.lookup_key(table)
    return Target(table.name, str(warehouse.folder(table.name)), table.arrow, indexed)


def rows(*values: tuple[float, str | None, int | None]) -> pa.Table:
    named = [
        {"event_time": NOON + timedelta(minutes=minute), "owner": owner, "n": n, "took_ms": 0.5}
        for minute, owner, n in values
    ]
    return pa.Table.from_pylist(named, schema=TABLE.arrow)


def written(warehouse: Warehouse, *parts: pa.Table) -> list[dict[str, Any]]:
    with TableFile(target(warehouse)) as file:
        for part in parts:
            file.write(part)
    return table_files.described([file]).to_pylist()


def append(warehouse: Warehouse, files: list[dict[str, Any]], version: int) -> None:
    app = AppId("q", version, f"q {version}")
    row_writer.append_files(no_session, warehouse, TABLE, files, app)


def test_a_file_without_a_commit_is_not_in_the_table(warehouse: Warehouse) -> None:
    files = written(warehouse, rows((0, "a", 1)))
    assert DeltaTable(warehouse.folder("counts")).count() == 0
    append(warehouse, files, 0)
    assert DeltaTable(warehouse.folder("counts")).count() == 1


def test_a_batch_is_appended_once(warehouse: Warehouse) -> None:
    for version in (0, 1, 1, 0):
        append(warehouse, written(warehouse, rows((version, "a", version))), version)
    assert DeltaTable(warehouse.folder("counts")).count() == 2


def test_a_file_without_rows_is_none(warehouse: Warehouse) -> None:
    assert written(warehouse, rows()) == []


def test_bounds_are_of_all_parts(warehouse: Warehouse) -> None:
    (file,) = written(warehouse, rows((3, "b", 7), (1, None, None)), rows((2, "long" * 9, 5)))
    stats = json.loads(file["stats"])
    assert stats == {
        "numRecords": 3,
        "minValues": {"event_time": "2026-11-22T12:01:00.000000Z", "owner": "b", "n": 5},
        # A text that is cut may be less than the whole.
        "maxValues": {"event_time": "2026-11-22T12:03:00.000000Z", "n": 7},
        "nullCount": {"event_time": 0, "owner": 1, "n": 1},
    }


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**6),
            st.none() | st.text(max_size=40),
            st.none() | st.integers(-(2**63), 2**63 - 1),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_no_value_is_outside_of_the_bounds(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[tuple[int, str | None, int | None]],
) -> None:
    folder = tmp_path_factory.mktemp("table")
    with TableFile(Target("counts", str(folder), TABLE.arrow, ("owner", "n"))) as file:
        file.write(rows(*values))
    (row,) = table_files.described([file]).to_pylist()
    stats = json.loads(row["stats"])
    for at, name in ((1, "owner"), (2, "n")):
        for value in (each[at] for each in values):
            if value is not None:
                assert stats["minValues"][name] <= value <= stats["maxValues"].get(name, value)
        assert stats["nullCount"][name] == sum(each[at] is None for each in values)


def test_a_table_s_columns_are_read_back(warehouse: Warehouse) -> None:
    line = dict.fromkeys(REQUESTS.column_names) | {"event_time": NOON, "api": "FETCH"}
    partitions = [{"topic": "t", "partition": 1, "in_request": True, "in_response": True}]
    row = pa.Table.from_pylist([line | {"partitions": partitions}], schema=REQUESTS.arrow)
    with TableFile(target(warehouse, REQUESTS)) as file:
        file.write(row)
    files = table_files.described([file]).to_pylist()
    row_writer.append_files(no_session, warehouse, REQUESTS, files, AppId("q", 0, "q 0"))
    read = duckdb.sql(
        "SELECT partitions[1].topic, api FROM read_parquet($1)",
        params=[DeltaTable(warehouse.folder("requests")).file_uris()],
    ).fetchall()
    assert read == [("t", "FETCH")]
