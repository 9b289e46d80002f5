"""Runs jobs once and dies by kill -9 at one point of a batch, its JVM too.

`python -m tests.pipelines.faults.killed CONF POINT JOB...`: a point is `JOB BATCH WHERE`, where
being `begin` (the offset log is written, nothing else), `end` (all is written but the commit log)
or a table (just committed by Delta). An empty point: nothing happens.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.streaming import sinks
from quotaflow.pipelines.streaming.sinks import Batch

from . import driver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[["DataFrame", Batch], None]


def main(conf: str, point: str, *jobs: str) -> None:
    """Run the jobs, up to the point."""

    def pass_by(batch: Batch, where: str) -> None:
        if f"{batch.job} {batch.batch_id} {where}" == point and not batch.part:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    driver.keep_few_results()
    _tell_points(pass_by)
    error = driver.error_of(driver.conf_of(Path(conf)), jobs)
    assert error is None, error


def _tell_points(pass_by: Callable[[Batch, str], None]) -> None:
    start = sinks.start

    def reporting(frame: "DataFrame", job: str, warehouse: Any, write: Write, trigger: Any) -> Any:
        def written(frame: "DataFrame", batch: Batch) -> None:
            pass_by(batch, "begin")
            write(frame, batch)
            pass_by(batch, "end")

        return start(frame, job, warehouse, written, trigger)

    sinks.start = reporting
    for method in ("append", "replace", "recompute"):
        setattr(Batch, method, _with_point(getattr(Batch, method), pass_by))


def _with_point(
    method: Callable[..., None], pass_by: Callable[[Batch, str], None]
) -> Callable[..., None]:
    def write(batch: Batch, frame: "DataFrame", table: Any, *where: str) -> None:
        method(batch, frame, table, *where)
        pass_by(batch, table.name)

    return write


if __name__ == "__main__":
    main(*sys.argv[1:])
