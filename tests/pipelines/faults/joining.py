"""Runs jobs that join small files all the time, and dies by kill -9 at one point of a join.

`python -m tests.pipelines.faults.joining CONF POINT JOB...`: a point is `WHERE TABLE`, where being
`written` (the joined file is there, and no commit names it) or `joined` (it was just committed).
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quotaflow.pipelines.jobs import regular_joins, runner
from quotaflow.pipelines.terminal import output
from quotaflow.pipelines.warehouse import row_writer, small_files

from . import driver


def main(conf: str, point: str, *jobs: str) -> None:
    """Run the jobs until the point."""
    regular_joins.JOIN_EVERY_S = 0
    small_files.MANY_FILES = 2
    rewrite = row_writer.rewrite

    def pass_by(where: str, table: str) -> None:
        if f"{where} {table}" == point:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def with_points(warehouse: Any, table: Any, *files: Any) -> bool:
        pass_by("written", table.name)
        is_joined = rewrite(warehouse, table, *files)
        if is_joined:
            pass_by("joined", table.name)
        return is_joined

    replaced: Callable[..., bool] = with_points
    row_writer.rewrite = replaced
    driver.keep_few_results()
    runner.run(driver.conf_of(Path(conf)), list(jobs), 1, output.note)


if __name__ == "__main__":
    main(*sys.argv[1:])
