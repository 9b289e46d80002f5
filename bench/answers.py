"""All answers over a warehouse, from nothing, in a process that computed them before, as a driver.

`python bench/answers.py FOLDER` deletes the answers of a copy and computes them, twice. It prints
what the second time cost.
"""

import json
import resource
import shutil
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.python_times import time_of
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import ANSWERS


def newest_event(folder: Path) -> datetime:
    """The newest event_time of requests, by the log of the table."""
    reader = FolderReader(Warehouse(WarehouseSection(path=str(folder))))
    newest = time_of(reader.extents(["requests"])["requests"].last_event_time_us)
    if newest is None:
        raise SystemExit(f"{folder} has no requests: run make demo first")
    return newest


def no_session() -> NoReturn:
    """In place of a Spark session."""
    raise AssertionError("a folder needs no session")


def warn(text: str) -> None:
    """Show an answer that is not up to date."""
    print(text, file=sys.stderr)


def main() -> None:
    """Compute them, and print the cost."""
    folder = Path(sys.argv[1])
    for _ in range(2):
        for table in ("answer_state", *ANSWERS):
            shutil.rmtree(folder / table, ignore_errors=True)
        now = newest_event(folder)
        started, cpu_s = time.monotonic(), time.process_time()
        refresh(WarehouseSection(path=str(folder)), no_session, now, warn)
        took = {"CPU s": time.process_time() - cpu_s, "s": time.monotonic() - started}
    print(json.dumps(took | {"MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
