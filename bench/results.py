"""What all results on requests and fetches cost, over a demo's facts and many times them.

`python bench/results.py [--warehouse FOLDER] [--times N] [--rounds N]`, after `make demo`.
Each round computes all rows and replaces them. The first round is in a JVM that has just started.
With `--times` the facts are there N times, each copy three minutes after the one before. CPU
seconds of this process, its JVM and its Python workers.

`python bench/results.py --live PER_S [--minutes N] [--rounds N]`: the batch of the last minute of a
made-up log, with facts of the minutes before it, as `bench/month.py` with a day of files too. Tasks
run in this process, one after the other, without Spark.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import load_lines
import made_context
import past
import pyarrow as pa
from cpu import cpu_s
from deltalake.transaction import AddAction
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.folder import folder_task
from quotaflow.pipelines.compute.maintainer import ResultMaintainer, levels
from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.compute.schedule import ROWS_PER_TASK, task_plans
from quotaflow.pipelines.facts.ingest import of_request_log
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs import fetch_sessions
from quotaflow.udfs.engine import task
from quotaflow.udfs.facts import task as facts_task

MEASURED = ("request_results", "fetch_results")
APART = timedelta(minutes=3)
COPIES_AT_ONCE = 10
MINUTE = timedelta(minutes=1)
CLIENTS, RECORDS_PER_TASK = 200, 50_000
SESSIONS, IDLE_US = "fetch_sessions", 3_600_000_000
ONE_TASK = pa.record_batch({"id": [0]})
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def prepare(demo: Path, folder: Path, times: int) -> None:
    """A warehouse with the demo's tables, and its facts so many times."""
    facts = {JOBS[job].reads for job in MEASURED}
    for table in demo.iterdir():
        if not (table / "_delta_log").is_dir():
            continue
        if table.name in facts:
            by = [n * APART for n in range(times)]
            files = (by[n : n + COPIES_AT_ONCE] for n in range(0, times, COPIES_AT_ONCE))
            past.repeat(table, folder / table.name, files)
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
            job: ResultMaintainer(results(conf), conf.results)
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


def make_minutes(folder: Path, per_s: int, minutes: int, files: int) -> datetime:
    """A warehouse with a made-up log of so many minutes to the returned time, and small files."""
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    start = end - minutes * MINUTE
    minute, whole = folder / "minute", folder / "whole"
    for root in (minute, whole):
        make(root, start)
    ingest(minute, islice(load_lines.lines(CLIENTS, _ms(start), per_s), 60 * per_s))
    for facts in ("requests", "fetches"):
        past.repeat(minute / facts, whole / facts, [[n * MINUTE] for n in range(minutes)])
    if files:
        past.add_small_files(whole, files)
    return end


def make(folder: Path, start: datetime) -> None:
    """A warehouse that knows the made-up cluster, and has no facts."""
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    topics = load_lines.topics(CLIENTS)
    partitions = dict.fromkeys(topics, range(load_lines.PARTITIONS))
    made_context.write(warehouse, "c", start - MINUTE, topics, partitions)
    for table in TABLES.values():
        folder_tables.create(warehouse.place, table)


def ingest(folder: Path, lines: Iterator[bytes]) -> None:
    """Facts of these lines, made by the functions that tasks run."""
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder)))
    warehouse, log = Warehouse(conf.warehouse), of_request_log(conf, "c")
    batch, offset = Batch(warehouse, "bench", "made", 0), 0
    while part := list(islice(lines, RECORDS_PER_TASK)):
        to_files = facts_task.to_files(log.source, [batch.target(each) for each in log.tables])
        _commit(warehouse, to_files(iter([_records(part, offset)])))
        offset += len(part)
    place, limits = warehouse.place, fetch_sessions.Limits(IDLE_US, time.time_ns() // 1_000)
    relations = {
        name: place.files(TABLES[name], past.paths(folder / name))
        for name in ("requests", SESSIONS)
    }
    read = fetch_sessions.Read(relations, 1)
    follow = fetch_sessions.write_followed(read, limits, batch.target(TABLES["fetches"]))
    _commit(warehouse, follow(iter([ONE_TASK])))


def _records(lines: list[bytes], first: int) -> pa.RecordBatch:
    rows = len(lines)
    return pa.record_batch(
        {
            "key": pa.nulls(rows, pa.binary()),
            "value": pa.array(lines, pa.binary()),
            "topic": pa.array(["logs"] * rows),
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(first, first + rows), pa.int64()),
            "timestamp": pa.array([datetime.now(UTC)] * rows, pa.timestamp("us", "UTC")),
            "headers": pa.nulls(rows, HEADERS),
        }
    )


def _commit(warehouse: Warehouse, output: Iterator[pa.RecordBatch]) -> None:
    for row in (row for batch in output for row in batch.to_pylist()):
        if row["path"]:
            live = warehouse.place.open(row["table"])
            file = AddAction(row["path"], row["size_bytes"], {}, 0, True, row["stats"])
            live.create_write_transaction([file], "append", live.schema())


def _ms(time_: datetime) -> int:
    return int(time_.timestamp()) * 1_000


def measure_minute(folder: Path, end: datetime, lines: int, rounds: int) -> list[dict[str, float]]:
    """For each round, job and level: lines of the last minute, result rows, CPU and wall time."""
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder)))
    relations, measured = FolderRelations(Place.local(folder)), []
    for number in range(rounds):
        for job in MEASURED:
            results, facts = JOBS[job].results, JOBS[job].reads
            last = TimeRange(end - MINUTE, end)
            files = relations.within(facts, [last])
            for level, group in enumerate(levels(results(conf) if results else ())):
                due = [Computation(each, (last,), conf.results.max_lateness_s) for each in group]
                plans = task_plans(due, files, ROWS_PER_TASK)
                before_s, start = cpu_s(), time.perf_counter()
                tasks = [folder_task(plan, relations) for plan in plans]
                compute = task.over_relations(tasks, conf.results.task_memory_mb)
                numbers = pa.record_batch({"id": list(range(len(tasks)))})
                output = [row for batch in compute(iter([numbers])) for row in batch.to_pylist()]
                if errors := [row["error"] for row in output if row["error"]]:
                    raise SystemExit("\n".join(errors))
                cost = {"cpu_s": cpu_s() - before_s, "wall_s": time.perf_counter() - start}
                rows = sum(pa.ipc.open_stream(row["rows"]).read_all().num_rows for row in output)
                row = {"round": number + 1, "job": f"{job} {level}", "facts": lines, "rows": rows}
                measured.append(row | cost)
    return measured


def live(per_s: int, minutes: int, rounds: int, files: int = 0) -> list[dict[str, float]]:
    """As `measure_minute`, over a log that is made for it."""
    with tempfile.TemporaryDirectory() as name:
        end = make_minutes(Path(name), per_s, minutes, files)
        return measure_minute(Path(name, "whole"), end, 60 * per_s, rounds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouse", type=Path, default=config.home() / "warehouse")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--live", type=int, metavar="PER_S")
    parser.add_argument("--minutes", type=int, default=12)
    given = parser.parse_args()
    if given.live:
        measured = live(given.live, given.minutes, given.rounds)
    else:
        measured = measure(given.warehouse.resolve(), given.times, given.rounds)
    table = Table("round", "job", "facts", "rows", "CPU s", "s", "us of CPU per fact")
    for row in measured:
        cost = f"{row['cpu_s'] / row['facts'] * 1e6:.2f}"
        seconds = (f"{row['cpu_s']:.1f}", f"{row['wall_s']:.1f}", cost)
        table.add_row(*(str(row[key]) for key in ("round", "job", "facts", "rows")), *seconds)
    Console().print(table)


if __name__ == "__main__":
    main()
