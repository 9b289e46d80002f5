"""Runs jobs once and dies by kill -9 at one point of a batch, its JVM too.

`python -m tests.pipelines.faults.killed CONF POINT JOB...`: a point is `JOB BATCH WHERE`, where
being `begin` (the offset log is written, nothing else), `end` (all is written but the commit log),
a table (just committed by its writer), or `files:` and a table (delta-rs or tasks wrote data files
that no commit names). An empty point: nothing happens.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake

from quotaflow.pipelines.streaming import sinks
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import row_writer

from . import driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[["DataFrame", Batch], None]
PassBy = Callable[[Batch, str], None]


def main(conf: str, point: str, *jobs: str) -> None:
    """Run the jobs, up to the point."""

    def pass_by(batch: Batch, where: str) -> None:
        if f"{batch.job} {batch.batch_id} {where}" == point and not batch.part:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    driver.keep_few_results()
    batches: list[Batch] = []
    _add_points(pass_by, batches)
    _add_points_of_delta_rs(pass_by, batches, point.rpartition(" files:")[2])
    error = driver.error_of(driver.conf_of(Path(conf)), jobs)
    assert error is None, error


def _add_points(pass_by: PassBy, batches: list[Batch]) -> None:
    start = sinks.start

    def reporting(frame: "DataFrame", job: str, warehouse: Any, write: Write, trigger: Any) -> Any:
        def written(frame: "DataFrame", batch: Batch) -> None:
            batches.append(batch)
            pass_by(batch, "begin")
            write(frame, batch)
            pass_by(batch, "end")

        return start(frame, job, warehouse, written, trigger)

    sinks.start = reporting
    for method in ("append", "replace"):
        setattr(Batch, method, _with_point(getattr(Batch, method), pass_by))
    append_files = Batch.append_files

    def of_tasks(batch: Batch, open_session: Any, files: Any, table: Any) -> None:
        pass_by(batch, f"files:{table.name}")
        append_files(batch, open_session, files, table)
        pass_by(batch, table.name)

    Batch.append_files = of_tasks  # type: ignore[method-assign]


def _with_point(method: Callable[..., None], pass_by: PassBy) -> Callable[..., None]:
    def write(batch: Batch, frame: "DataFrame", table: Any, *where: str) -> None:
        method(batch, frame, table, *where)
        pass_by(batch, table.name)

    return write


def _add_points_of_delta_rs(pass_by: PassBy, batches: list[Batch], uncommitted: str) -> None:
    """`batches` are those that began; one job runs at a time. `uncommitted` is a table's name."""
    write_deltalake = deltalake.write_deltalake

    def write(live: deltalake.DeltaTable, rows: Any, **how: Any) -> None:
        folder = Path(live.table_uri.removeprefix("file://"))
        if folder.name == uncommitted:
            _write_files_only(folder, write_deltalake, rows, how)
        else:
            write_deltalake(live, rows, **how)
        if batches:
            pass_by(batches[-1], f"files:{folder.name}")
            pass_by(batches[-1], folder.name)

    deltalake.write_deltalake = write
    assert not hasattr(row_writer, "write_deltalake"), "it is imported where it is used"


def _write_files_only(
    folder: Path, write_deltalake: Callable[..., None], rows: Any, how: dict[str, Any]
) -> None:
    """Leave in the folder what delta-rs writes before its commit: it gives no place to stop at."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / folder.name
        shutil.copytree(folder, copy)
        write_deltalake(deltalake.DeltaTable(copy), rows, **how)
        for file in copy.rglob("*.parquet"):
            of_table = folder / file.relative_to(copy)
            if file.parent.name != "_delta_log" and not of_table.exists():
                of_table.parent.mkdir(exist_ok=True)
                shutil.copy2(file, of_table)


if __name__ == "__main__":
    main(*sys.argv[1:])
