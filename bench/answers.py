"""All answers over a warehouse, from nothing, in a process that imports nothing else.

`python bench/answers.py FOLDER` deletes the answers of a copy and computes them.
"""

import shutil
import sys
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


def main() -> None:
    """Compute them."""
    folder = Path(sys.argv[1])
    for table in ("answer_state", *ANSWERS):
        shutil.rmtree(folder / table, ignore_errors=True)
    refresh(WarehouseSection(path=str(folder)), no_session, newest_event(folder), print)


if __name__ == "__main__":
    main()
