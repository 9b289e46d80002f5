"""A year of rows and of upkeep each week, in minutes: files, bytes, logs and memory stay bounded.

The simulated clock is that of the rows and of upkeep. Files are made older by the time that passes,
so that what the age of a file decides is decided as in a year. `-s` prints figures by quarter.
"""

import os
import resource
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from quotaflow.pipelines import config
from quotaflow.pipelines.config import UpkeepSection
from quotaflow.pipelines.maintenance.upkeep import run_upkeep
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.row_writer import AppId
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import Row, request, row

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3_600)]

WEEKS, DAYS, ROWS = 52, 7, 50
KEPT_DAYS = {"requests": 30, "traffic": 90, "quota_usage": 90, "pipeline_progress": 90}
QUARTER = 13
_GIVEN: dict[str, Row] = {
    "quota_usage": {
        "usage": 1.0,
        "broker_id": 2,
        "quota_type": "producer_byte_rate",
        "enforcement": "stock",
    },
}
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Size:
    """What a warehouse has on disk, and the most memory that the process had."""

    rows: int
    data_files: int
    log_files: int
    megabytes: float
    memory_mb: int


def no_session() -> NoReturn:
    raise AssertionError("a folder needs no session")


def size(warehouse: Warehouse) -> Size:
    """The size of all tables."""
    folder = warehouse.conf.folder
    files = [path for path in folder.rglob("*") if path.is_file()]
    in_log = [path for path in files if "_delta_log" in path.parts]
    data = [path for path in files if path.suffix == ".parquet" and path not in set(in_log)]
    rows = sum(DeltaTable(folder / name).count() for name in KEPT_DAYS)
    return Size(
        rows,
        len(data),
        len(in_log),
        round(sum(path.stat().st_size for path in files) / 1e6, 1),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def made_older(folder: Path, by: timedelta) -> None:
    """Let all files be so much older."""
    for path in folder.rglob("*"):
        if path.is_file():
            changed = path.stat().st_mtime - by.total_seconds()
            os.utime(path, (changed, changed))


def filled(warehouse: Warehouse, day: datetime, number: int) -> None:
    """Append a batch of a day to each table."""
    start = day - datetime(2026, 11, 21, 12, tzinfo=UTC)
    given = _GIVEN | {"pipeline_progress": {"job": "year", "query_id": "q", "batch_id": number}}
    for name in KEPT_DAYS:
        seconds = [start.total_seconds() + 60 * n for n in range(ROWS)]
        made = [
            request(each, "PRODUCE", record_time=day)
            if name == "requests"
            else row(name, each, given.get(name, {}))
            for each in seconds
        ]
        content = pa.Table.from_pylist(made, schema=TABLES[name].arrow)
        app = AppId("year", number, f"year {number}")
        row_writer.append(no_session, warehouse, TABLES[name], content, app)


def test_a_year_leaves_what_a_quarter_leaves(warehouse: Warehouse) -> None:
    warehouse.ensure(no_session, [TABLES[name] for name in KEPT_DAYS])
    for name in KEPT_DAYS:
        # Removed files are named in the log for a week of the true clock.
        warehouse.set_property(
            no_session, name, "delta.deletedFileRetentionDuration", "interval 0 seconds"
        )
    section = UpkeepSection(retention_days=KEPT_DAYS).model_copy(update={"vacuum_after_h": 0})
    conf = config.Conf(warehouse=warehouse.conf, upkeep=section)
    day, number, sizes = datetime.now(UTC) - WEEKS * _WEEK, 0, list[Size]()
    for week in range(WEEKS):
        for _ in range(DAYS):
            filled(warehouse, day, number)
            day, number = day + timedelta(days=1), number + 1
        made_older(warehouse.conf.folder, _WEEK)
        run_upkeep(conf, list(KEPT_DAYS), day, lambda _: None)
        if week % QUARTER == QUARTER - 1:
            sizes.append(size(warehouse))
            sys.stdout.write(f"{week + 1} weeks: {sizes[-1]}\n")
    second, *later = sizes[1:]
    for each in later:
        assert each.rows <= 1.1 * second.rows
        assert each.data_files <= 1.2 * second.data_files
        assert each.log_files <= 1.2 * second.log_files
        assert each.megabytes <= 1.2 * second.megabytes
        assert each.memory_mb <= 1.2 * second.memory_mb
