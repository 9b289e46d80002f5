"""A folder against an object store, in one run: commits, an ingest's files, and queries.

    python bench/stores.py s3://BUCKET/PREFIX

The environment has the login. CPU seconds are of this process alone, without the server's.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.row_writer import AppId, Replaced
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.ddl import lookup_key
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.table_files import TableFile

TRAFFIC, REQUESTS = TABLES["traffic"], TABLES["requests"]
START = datetime(2026, 11, 21, tzinfo=UTC)
COMMITS, LINES = 20, 200_000
Work = Callable[[Warehouse, int], object]


def no_session() -> None:
    """Neither place needs a session of Spark."""
    raise AssertionError("Spark was asked for")


def rows(table: str, count: int, start: datetime) -> pa.Table:
    """Rows with times and ids; the other columns are null."""
    schema = TABLES[table].arrow
    columns = {
        "event_time": [start + timedelta(milliseconds=n) for n in range(count)],
        "event_date": [start.date()] * count,
        "cluster_id": ["cluster"] * count,
        "principal": [f"User:{n % 50}" for n in range(count)],
        "api": ["FETCH"] * count,
        "client_id": [f"client-{n % 500}" for n in range(count)],
    }
    given = {name: values for name, values in columns.items() if name in schema.names}
    arrays = [
        pa.array(given[f.name], f.type) if f.name in given else pa.nulls(count, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def replace(warehouse: Warehouse, number: int) -> None:
    """Replace a minute of a result, as a batch does."""
    start = START + timedelta(minutes=number % 5)
    old = Replaced([TimeRange(start, start + timedelta(minutes=1))])
    row_writer.replace(no_session, warehouse, TRAFFIC, rows("traffic", 500, start), old)  # type: ignore[arg-type]


def ingest(warehouse: Warehouse, number: int) -> None:
    """Write a file of lines and commit it, as an ingest batch does."""
    start = START + timedelta(minutes=number)
    target = warehouse.place.target(REQUESTS, lookup_key(REQUESTS))
    with TableFile(target) as file:
        file.write(rows("requests", LINES // COMMITS, start))
    app = AppId("bench", number, f"bench {number}")
    row_writer.append_files(no_session, warehouse, REQUESTS, [file.described() or {}], app)  # type: ignore[arg-type]


def query(warehouse: Warehouse, _: int) -> object:
    """Count lines of a minute: files and row groups of other times are skipped."""
    sql = (
        "SELECT principal, count(*) AS n FROM requests "
        "WHERE event_time >= TIMESTAMP '2026-11-21 00:10:00' "
        "AND event_time < TIMESTAMP '2026-11-21 00:11:00' GROUP BY 1"
    )
    return FolderReader(warehouse).rows(sql)


def whole(warehouse: Warehouse, _: int) -> object:
    """Read columns of all lines."""
    return FolderReader(warehouse).rows("SELECT client_id, count(*) AS n FROM requests GROUP BY 1")


def measured(work: Work, warehouse: Warehouse, times: int) -> tuple[float, float]:
    """CPU and wall seconds of one time."""
    cpu, wall = time.process_time(), time.perf_counter()
    for number in range(times):
        work(warehouse, number)
    return (time.process_time() - cpu) / times, (time.perf_counter() - wall) / times


def main(uri: str) -> None:
    """Print a table of both places."""
    works: dict[str, tuple[Work, int]] = {
        "replace a minute of a result": (replace, COMMITS),
        "write and commit 10,000 lines": (ingest, COMMITS),
        "lines of a minute by principal": (query, 5),
        "200,000 lines by client": (whole, 5),
    }
    with tempfile.TemporaryDirectory() as scratch:
        places = [
            Warehouse(WarehouseSection(path=f"{scratch}/warehouse")),
            Warehouse(WarehouseSection(path=uri, checkpoints=f"{scratch}/checkpoints")),
        ]
        for warehouse in places:
            Path(scratch, "warehouse").mkdir(exist_ok=True)
            warehouse.ensure(no_session, [TRAFFIC, REQUESTS])  # type: ignore[arg-type]
        sys.stdout.write("| | folder CPU s | store CPU s | ratio | folder s | store s |\n")
        sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
        for name, (work, times) in works.items():
            (cpu, wall), (store_cpu, store_wall) = (measured(work, w, times) for w in places)
            figures = (cpu, store_cpu, store_cpu / cpu, wall, store_wall)
            sys.stdout.write(f"| {name} | {' | '.join(f'{each:.3f}' for each in figures)} |\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
