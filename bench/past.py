"""More time, names and files than a demo has: its newest rows again, moved and renamed."""

import json
from collections.abc import Iterable
from datetime import UTC, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction
from pyarrow import parquet

from quotaflow.pipelines.warehouse import delta_files, folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.connections import connect

NAMES = ("principal", "client_id", "group_id", "member_id", "transactional_id")
ROWS_PER_FILE, APART = 200, timedelta(seconds=5)


def paths(folder: Path) -> list[str]:
    """The data files of a table."""
    time = TABLES[folder.name].time
    return [file.path for file in delta_files.of_version(DeltaTable(folder), folder, time)]


def newest(folder: Path) -> pa.Table:
    """The rows of a table's last half an hour: what a demo has before it is not dense."""
    table = TABLES[folder.name]
    if not (files := paths(folder)):
        return table.arrow.empty_table()
    hive = f"hive_partitioning = {bool(table.partitioning)}, union_by_name = true"
    rows = f"FROM read_parquet({files!r}, {hive})"
    since = f"(SELECT max({table.time}) {rows}) - INTERVAL 30 MINUTE"
    with connect() as connection:
        stored = connection.sql(f"SELECT * {rows} WHERE {table.time} > {since}").to_arrow_table()
    columns = [
        stored[f.name] if f.name in stored.column_names else pa.nulls(stored.num_rows, f.type)
        for f in table.arrow
    ]
    return pa.table(columns, names=table.column_names).cast(table.arrow)


def moved(table: Table, rows: pa.Table, by: timedelta, copy: int = 0) -> pa.Table:
    """These rows at another time, and with other names in each copy but 0."""
    for index, field in enumerate(table.arrow):
        column = rows.column(index)
        if pa.types.is_timestamp(field.type):
            column = pc.add(column, pa.scalar(by, pa.duration("us")))
        elif field.name == "event_date":
            column = pc.add(rows[table.time], pa.scalar(by, pa.duration("us"))).cast(field.type)
        elif field.name == "payload_sha256":
            # No two pushes have the same payload, and rows of one push name the same.
            column = pc.binary_join_element_wise(column, str(by // timedelta(seconds=1)), "")
        elif copy and field.name in NAMES:
            column = pc.binary_join_element_wise(str(copy), column, "-")
        rows = rows.set_column(index, field, column)
    return rows


def repeat(
    source: Path, target: Path, files: Iterable[Iterable[timedelta]], copies: Iterable[int] = (0,)
) -> None:
    """A table's newest rows moved by each of these times, in a commit for each group of them."""
    table, rows = TABLES[target.name], newest(source)
    folder_tables.create(Place.local(target.parent), table)
    for times in files if rows.num_rows else ():
        batches = (
            batch
            for by in times
            for copy in copies
            for batch in moved(table, rows, by, copy).to_batches()
        )
        reader = pa.RecordBatchReader.from_batches(table.arrow, batches)
        write_deltalake(target, reader, mode="append")


def add_small_files(folder: Path, number: int) -> None:
    """Files of few of the newest requests, one for each five seconds before them."""
    table, target = TABLES["requests"], folder / "requests"
    rows = newest(target).slice(0, ROWS_PER_FILE)
    last = max(rows[table.time].to_pylist())
    added = []
    for n in range(number):
        at, file = last - APART * (n + 1), f"small-{n:06d}.parquet"
        times = pa.array([at] * rows.num_rows, table.arrow.field(table.time).type)
        index = rows.schema.get_field_index(table.time)
        timed = rows.set_column(index, table.arrow.field(table.time), times)
        parquet.write_table(timed, target / file)
        bounds = {table.time: at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        stats = {"numRecords": rows.num_rows, "minValues": bounds, "maxValues": bounds}
        size = (target / file).stat().st_size
        added.append(AddAction(file, size, {}, 0, True, json.dumps(stats)))
    live = DeltaTable(target)
    live.create_write_transaction(added, "append", live.schema())
