"""What questions cost where there is a past: a month of a demo's rows, and a day of small files.

`python bench/month.py [--json] [--warehouse FOLDER] [--days N] [--minutes N] [--files N]`, after
`make demo`. The month has the demo's newest rows again every `--minutes` minutes (30: some 4
lines/s), one file a table and day. The day has also `--files` files of requests, as a live job at
10,000 lines/s leaves them in eight hours. CPU seconds, wall time and peak memory of a process per
command.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.warehouse import delta_files, folder_tables
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.python_times import time_of
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import ANSWERS, EVENTS, TABLES
from quotaflow.udfs.engine.connections import connect

DAY_MINUTES = 24 * 60
GROWING = (*sorted(EVENTS), "pipeline_progress", "query_progress", "replica_sizes")
"""Tables that get rows while nothing changes."""
TIME = pa.timestamp("us", "UTC")
COMMANDS = {
    "why": ("why", "dave"),
    "report": ("report", "--out", "{scratch}/report.html"),
    "plan": ("plan",),
    "status": ("status",),
    "tables": ("tables",),
    "show": ("show", "throttled_clients"),
    "sql, 5 minutes": ("sql", "SELECT count(*) FROM requests WHERE event_time >= '{newest}'"),
    # These change the warehouse, which is a copy.
    "all answers": (),
    "upkeep": ("upkeep",),
    "upkeep again": ("upkeep",),
}


def paths(folder: Path, time_column: str) -> list[str]:
    """The data files of a table."""
    return [f.path for f in delta_files.of_version(DeltaTable(folder), folder, time_column)]


def make(demo: Path, folder: Path, days: int, minutes: int) -> None:
    """A warehouse with the demo's rows every so many minutes of the days before it."""
    folder.mkdir(parents=True)
    for each in sorted(demo.iterdir()):
        if each.name in GROWING and (each / "_delta_log").is_dir():
            repeat(each, folder / each.name, days, minutes)
        elif each.is_dir():
            shutil.copytree(each, folder / each.name)
        else:
            shutil.copy(each, folder)


def repeat(demo: Path, target: Path, days: int, minutes: int) -> None:
    """A table's rows again and again, one file a day and the newest as they are."""
    table = TABLES[target.name]
    files = paths(demo, table.time)
    folder_tables.create(Place.local(target.parent), table)
    if not files:
        return
    with connect(threads=2, memory_limit="4GiB") as connection:
        dates = "hive_partitioning = true, hive_types = {'event_date': DATE}"
        hive = dates if table.partitioning else "hive_partitioning = false"
        read = f"read_parquet({files!r}, union_by_name = true, {hive})"
        # The demo has a past, which is not dense.
        since = f"(SELECT max({table.time}) FROM {read}) - INTERVAL {minutes} MINUTE"
        connection.execute(
            f"CREATE TABLE demo AS SELECT * FROM {read} WHERE {table.time} > {since}"
        )
        live = {name for name, *_ in connection.execute("DESCRIBE demo").fetchall()}
        columns = ", ".join(column(f, table.time, live) for f in table.arrow)
        per_day = DAY_MINUTES // minutes
        for day in reversed(range(days)):
            rows = connection.sql(
                f"SELECT {columns} FROM demo, (SELECT (i + {day * per_day}) * {minutes} * 60000000 "
                f"AS shift FROM range({per_day}) AS r (i)) ORDER BY shift DESC"
            )
            write_deltalake(target, rows.to_arrow_table().cast(table.arrow), mode="append")


def column(field: pa.Field, time_column: str, live: set[str]) -> str:
    """SQL of a column of the rows, moved back in time."""
    if field.name == "event_date":
        return f"CAST(make_timestamp(epoch_us({time_column}) - shift) AS DATE) AS event_date"
    if field.name not in live:
        return f"NULL AS {field.name}"
    if pa.types.is_timestamp(field.type):
        return f"make_timestamp(epoch_us({field.name}) - shift) AS {field.name}"
    return f'"{field.name}"'


def add_small_files(folder: Path, number: int) -> None:
    """Files of one row group of the newest requests, one for each five seconds before them."""
    table = TABLES["requests"]
    target = folder / table.name
    source = DeltaTable(target)
    newest_first = sorted(paths(target, table.time))
    with connect(threads=1) as connection:
        sql = f"SELECT * FROM read_parquet({newest_first!r}, union_by_name = true)"
        ((newest,),) = connection.sql(f"SELECT max(event_time) FROM ({sql})").fetchall()
        rows = connection.sql(f"{sql} ORDER BY event_time DESC LIMIT 200").to_arrow_table()
    rows = rows.select(table.column_names).cast(table.arrow)
    index = rows.column_names.index(table.time)
    added = []
    for n in range(number):
        at = newest - timedelta(seconds=5 * (number - n))
        times = pa.array([at + timedelta(milliseconds=k) for k in range(rows.num_rows)])
        file = f"small-{n:06d}.parquet"
        timed = rows.set_column(index, table.arrow.field(table.time), times.cast(TIME))
        parquet.write_table(timed, target / file)
        last = at + timedelta(milliseconds=rows.num_rows)
        added.append(
            AddAction(
                path=file,
                size=(target / file).stat().st_size,
                partition_values={},
                modification_time=0,
                data_change=True,
                stats=json.dumps(
                    {
                        "numRecords": rows.num_rows,
                        "minValues": {table.time: utc(at)},
                        "maxValues": {table.time: utc(last)},
                        "nullCount": {table.time: 0},
                    }
                ),
            )
        )
    source.create_write_transaction(added, "append", source.schema())


def utc(time_: datetime) -> str:
    """A time as Delta's statistics have it."""
    return time_.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def measure(folder: Path, scratch: Path) -> Iterator[dict[str, object]]:
    """What each command costs over a warehouse."""
    newest = newest_event(folder)
    parts = {"scratch": str(scratch), "newest": utc(newest - timedelta(minutes=5))}
    environment = os.environ | {"QUOTAFLOW__WAREHOUSE__PATH": str(folder)}
    for name, command in COMMANDS.items():
        arguments = ["-m", "quotaflow.pipelines", *(each.format(**parts) for each in command)]
        if not command:
            for table in ("answer_state", *ANSWERS):
                shutil.rmtree(folder / table, ignore_errors=True)
            arguments = [__file__, "--refresh", "--warehouse", str(folder)]
        yield {"command": name} | cost([sys.executable, *arguments], environment)


def no_session() -> NoReturn:
    """In place of a Spark session."""
    raise AssertionError("a folder needs no session")


def newest_event(folder: Path) -> datetime:
    """The newest event_time of requests, by the log of the table."""
    reader = FolderReader(Warehouse(config.WarehouseSection(path=str(folder))))
    newest = time_of(reader.extent("requests").last_event_time_us)
    if newest is None:
        raise SystemExit(f"{folder} has no requests: run make demo first")
    return newest


def cost(command: Sequence[str], environment: dict[str, str]) -> dict[str, object]:
    """CPU seconds and wall seconds of a process, and its exit code."""
    started = time.monotonic()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "wall_s": round(time.monotonic() - started, 2),
        "peak_mb": usage.ru_maxrss // 1024,
        "exit": process.returncode,
    }


def main() -> None:
    """Make the warehouses, run each command over them, print what it cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--refresh", action="store_true", help="only compute the answers")
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--files", type=int, default=5_760)
    arguments = parser.parse_args()
    if arguments.refresh:
        conf = config.WarehouseSection(path=str(arguments.warehouse))
        refresh(conf, no_session, datetime.now(UTC), print)
        return
    measured: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        alone, month, day = (Path(scratch, name) for name in ("demo", "month", "day"))
        shutil.copytree(arguments.warehouse, alone)
        warehouses = {"the demo alone": alone}
        make(arguments.warehouse, month, arguments.days, arguments.minutes)
        warehouses[f"{arguments.days} days"] = month
        shutil.copytree(arguments.warehouse, day)
        add_small_files(day, arguments.files)
        warehouses[f"{arguments.files} files of requests"] = day
        for name, folder in warehouses.items():
            measured += [{"warehouse": name} | each for each in measure(folder, Path(scratch))]
    if arguments.json:
        print(json.dumps(measured))
        return
    table = Table(*measured[0])
    for each in measured:
        table.add_row(*(str(value) for value in each.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
