"""Snapshots of the demo's past are the first of their tables."""

from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from quotaflow.demo.past import snapshots, week
from quotaflow.demo.past.clock import Clock
from quotaflow.demo.past.week import Week
from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

NOON_MS = round(datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp() * 1e3)


def test_offsets_and_quotas_of_the_past_come_into_a_warehouse_without_them(
    tmp_path: Path,
) -> None:
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(tmp_path)))
    # What the first snapshot of the demo makes.
    needed = ("requests", "pipeline_progress", "client_quotas")
    with Warehouse(conf.warehouse).lock():
        Warehouse(conf.warehouse).ensure(no_session, [TABLES[name] for name in needed])
    snapshots.take_all(conf, "c1", Week(Clock(NOON_MS), {}, 1))
    reader = FolderReader(Warehouse(conf.warehouse))
    offsets = reader.rows("SELECT * FROM partition_offsets")
    assert {row["topic"] for row in offsets} == {week.CARTS}
    assert all(0 < row["local_log_start_offset"] < row["log_end_offset"] for row in offsets)
    quotas = reader.rows('SELECT "user", quota FROM client_quotas ORDER BY event_time')
    assert [(row["user"], row["quota"]) for row in quotas] == [
        (week.SEARCH_USER, quota) for quota in (week.FIRST_QUOTA, week.LAST_QUOTA)
    ]


def no_session() -> NoReturn:
    raise AssertionError("a folder needs no session")
