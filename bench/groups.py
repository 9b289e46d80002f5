"""What lags of groups cost: CPU seconds of the answers, and bytes of the tables they read.

`python bench/groups.py [--json] [--groups 100] [--partitions 20] [--minutes 1440]`. Each group
commits each of its partitions in each minute, and each partition has its end in each minute, as
ingest writes them. The warehouse has these rows alone, in one file a table and day; one core.
"""

import argparse
import json
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from cpu import cpu_s
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table as Grid

from quotaflow.pipelines import config
from quotaflow.pipelines.results.answers.folder import FolderSource
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES

MEASURED = ("rebalances", "group_lag", "why_groups_lag")
NOW = datetime(2026, 11, 26, 23, tzinfo=UTC)
RECORDS_PER_MINUTE, STEP_PER_GROUP = 6_000, 37


def minutes_of(count: int, each: int) -> tuple[pa.Array, pa.Array, np.ndarray]:
    """The time and day of `each` rows in each minute, and the number of the minute."""
    number = np.repeat(np.arange(count), each)
    start = int((NOW - timedelta(minutes=count)).timestamp())
    times = pa.array((start + number * 60) * 1_000_000).cast(pa.timestamp("us", "UTC"))
    return times, times.cast(pa.timestamp("us")).cast(pa.date32()), number


def texts(prefix: str, numbers: np.ndarray) -> pa.Array:
    """Names by number, each text once in memory."""
    names = pa.array([f"{prefix}{n}" for n in range(int(numbers.max()) + 1)])
    return names.take(pa.array(numbers))


def arrow(table: Table, **columns: pa.Array) -> pa.Table:
    """Rows of a table in which the other columns are null."""
    count = len(columns["event_time"])
    every = {"cluster_id": pa.array(["c"] * count), **columns}
    arrays = [every.get(f.name, pa.nulls(count, f.type)).cast(f.type) for f in table.arrow]
    return pa.Table.from_arrays(arrays, schema=table.arrow)


def commits(groups: int, partitions: int, minutes: int) -> pa.Table:
    """A commit of each group and partition in each minute."""
    times, days, minute = minutes_of(minutes, groups * partitions)
    place = np.tile(np.arange(groups * partitions), minutes)
    group = place // partitions
    offset = pa.array(minute * RECORDS_PER_MINUTE - group * STEP_PER_GROUP)
    return arrow(
        TABLES["group_commits"],
        event_time=times,
        event_date=days,
        group_id=texts("group-", group),
        topic=texts("topic-", group),
        partition=pa.array(place % partitions),
        principal=texts("User:", group),
        commits=pa.array(np.full(len(place), 12)),
        failed_commits=pa.array(np.zeros(len(place), np.int64)),
        first_offset=offset,
        last_offset=offset,
        max_offset=offset,
        last_commit_time=times,
    )


def ends(groups: int, partitions: int, minutes: int) -> pa.Table:
    """The end of each partition in each minute, as fetches of followers show it."""
    times, days, minute = minutes_of(minutes, groups * partitions)
    place = np.tile(np.arange(groups * partitions), minutes)
    end = pa.array((minute + 1) * RECORDS_PER_MINUTE)
    return arrow(
        TABLES["replica_offsets"],
        event_time=times,
        event_date=days,
        topic=texts("topic-", place // partitions),
        partition=pa.array(place % partitions),
        broker_id=pa.array(place % 3 + 1),
        answers=pa.array(np.full(len(place), 60)),
        max_high_watermark=end,
        max_log_end_offset=end,
    )


def filled(folder: Path, groups: int, partitions: int, minutes: int) -> dict[str, int]:
    """Makes a warehouse; returns the bytes of its tables that have rows."""
    for table in TABLES.values():
        folder_tables.create(Place.local(folder), table)
    rows = {
        "group_commits": commits(groups, partitions, minutes),
        "replica_offsets": ends(groups, partitions, minutes),
    }
    for name, content in rows.items():
        write_deltalake(folder / name, content, mode="append")
    return {
        name: sum(file.stat().st_size for file in (folder / name).rglob("*.parquet"))
        for name in rows
    }


def measure(groups: int, partitions: int, minutes: int) -> dict[str, float]:
    """CPU seconds by answer, the rows of each, and MB by table."""
    measured: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = filled(folder, groups, partitions, minutes)
        measured |= {f"{table}, MB": size / 1e6 for table, size in sizes.items()}
        warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
        with closing(FolderSource(warehouse, NOW)) as source:
            for answer in (each for each in ANSWERS if each.name in MEASURED):
                before = cpu_s()
                rows = source.compute(answer).rows
                measured[f"{answer.name}, CPU s"] = cpu_s() - before
                measured[f"{answer.name}, rows"] = rows.num_rows
                write_deltalake(folder / answer.name, rows, mode="overwrite")
                source.changed(answer.name)
    return measured


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--minutes", type=int, default=1_440)
    given = parser.parse_args()
    measured = measure(given.groups, given.partitions, given.minutes)
    if given.json:
        json.dump(measured, sys.stdout, indent=2)
        return
    grid = Grid("what", "measured")
    for name, value in measured.items():
        grid.add_row(name, f"{value:,.2f}".removesuffix(".00"))
    Console().print(grid)


if __name__ == "__main__":
    main()
