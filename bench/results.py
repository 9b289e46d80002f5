"""What all results on requests and fetches cost, over a demo's facts and many times them.

`python bench/results.py [--warehouse FOLDER] [--times N] [--rounds N]`, after `make demo`.
Each round computes all rows and replaces them. The first round is in a JVM that has just started.
With `--times` the facts are there N times, each copy three minutes after the one before. CPU
seconds of this process, its JVM and its Python workers.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa
from cpu import cpu_s
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import delta_files, folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import EVER
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

MEASURED = ("request_results", "fetch_results")
APART_US = 180 * 1_000_000
COPIES_AT_ONCE = 10


def paths(folder: Path) -> list[str]:
    """The data files of a table."""
    return [file.path for file in delta_files.of_version(DeltaTable(folder), folder, "event_time")]


def repeat(demo: Path, target: Path, times: int) -> None:
    """The rows of a fact table so many times, each copy some minutes later."""
    table = TABLES[target.name]
    folder_tables.create(Place.local(target.parent), table)
    columns = ", ".join(
        f"make_timestamp(epoch_us({f.name}) + $shift) AS {f.name}"
        if pa.types.is_timestamp(f.type)
        else f'"{f.name}"'
        for f in table.arrow
    )
    sql = f"SELECT {columns} FROM read_parquet({paths(demo)!r}, union_by_name = true)"
    with duckdb.connect() as connection:
        for first in range(0, times, COPIES_AT_ONCE):
            copies = [
                connection.sql(sql, params={"shift": number * APART_US}).to_arrow_table()
                for number in range(first, min(first + COPIES_AT_ONCE, times))
            ]
            rows = pa.concat_tables(copies).cast(table.arrow)
            write_deltalake(target, rows, mode="append")


def prepare(demo: Path, folder: Path, times: int) -> None:
    """A warehouse with the demo's tables, and its facts so many times."""
    facts = {JOBS[job].reads for job in MEASURED}
    for table in demo.iterdir():
        if not (table / "_delta_log").is_dir():
            continue
        if table.name in facts and times > 1:
            repeat(table, folder / table.name, times)
        else:
            shutil.copytree(table, folder / table.name)


def measure(demo: Path, times: int, rounds: int) -> list[dict[str, float]]:
    """For each round and job: facts, rows, CPU seconds and seconds."""
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "warehouse"
        folder.mkdir()
        prepare(demo, folder, times)
        conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder)))
        spark, warehouse = session.get(conf.spark), Warehouse(conf.warehouse)
        maintainers = {
            job: ResultMaintainer(results(conf), conf)
            for job in MEASURED
            if (results := JOBS[job].results)
        }
        needed = [r.table for each in maintainers.values() for r in each.results]
        warehouse.ensure(lambda: spark, [*needed, *TABLES.values()])
        spark.range(1).count()
        for number in range(rounds):
            for job, maintainer in maintainers.items():
                facts = warehouse.read(spark, JOBS[job].reads).count()
                before_s, start = cpu_s(), time.perf_counter()
                rows = maintainer.rebuild(Batch(warehouse, job, "bench", number), spark, EVER)
                cost = {"cpu_s": cpu_s() - before_s, "wall_s": time.perf_counter() - start}
                row = {"round": number + 1, "job": job, "facts": facts, "rows": rows.total()}
                measured.append(row | cost)
    return measured


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    measured = measure(given.warehouse.resolve(), given.times, given.rounds)
    table = Table("round", "job", "facts", "rows", "CPU s", "s", "us of CPU per fact")
    for row in measured:
        cost = f"{row['cpu_s'] / row['facts'] * 1e6:.2f}"
        seconds = (f"{row['cpu_s']:.1f}", f"{row['wall_s']:.1f}", cost)
        table.add_row(*(str(row[key]) for key in ("round", "job", "facts", "rows")), *seconds)
    Console().print(table)


if __name__ == "__main__":
    main()
