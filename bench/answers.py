"""All answers over a warehouse, each of other rows than before, in a process of its own.

`python bench/answers.py FOLDER --empty` removes their rows, of a copy, and the versions of what
they were computed from. `python bench/answers.py FOLDER` then computes them.
"""

import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.results.answers.answer_state import from_rows, to_rows
from quotaflow.pipelines.results.answers.refresh import refresh
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.python_times import time_of
from quotaflow.pipelines.warehouse.row_writer import ALL_ROWS
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import ANSWER_STATE


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


def compute(folder: Path) -> None:
    """Compute all answers that are due."""
    refresh(WarehouseSection(path=str(folder)), no_session, newest_event(folder), print)


def empty(folder: Path) -> None:
    """Compute all answers, remove their rows, and forget what they were computed from."""
    compute(folder)
    warehouse = Warehouse(WarehouseSection(path=str(folder)))
    states = from_rows(FolderReader(warehouse).rows("SELECT * FROM answer_state"))
    forgotten = {name: replace(state, inputs={}) for name, state in states.items()}
    row_writer.replace(no_session, warehouse, ANSWER_STATE, to_rows(forgotten), ALL_ROWS)
    for table in map(TABLES.__getitem__, states):
        row_writer.replace(no_session, warehouse, table, table.arrow.empty_table(), ALL_ROWS)


def main() -> None:
    """Compute them, or empty them."""
    folder = Path(sys.argv[1])
    if "--empty" in sys.argv:
        empty(folder)
    else:
        compute(folder)


if __name__ == "__main__":
    main()
