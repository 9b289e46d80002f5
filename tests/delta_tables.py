"""Real Delta tables in a folder, written without a JVM."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def recent_time() -> datetime:
    """A time of the last five minutes, and the same in them: tests that need it have equal rows."""
    now = datetime.now(UTC)
    return now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0)


Fill = Callable[[str, list[dict[str, Any]]], None]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse in an empty folder."""
    return Warehouse(config.WarehouseSection(path=str(tmp_path / "warehouse")))


@pytest.fixture
def fill(warehouse: Warehouse) -> Fill:
    """Appends rows to a table of that warehouse; columns not given are null."""

    def append(name: str, rows: list[dict[str, Any]]) -> None:
        table = TABLES[name]
        content = pa.Table.from_pylist(rows, schema=table.arrow)
        partitions = list(table.partitioning) or None
        folder = warehouse.folder(name)
        write_deltalake(folder, content, mode="append", partition_by=partitions)

    return append


def violation(principal: str, at: datetime, **others: Any) -> dict[str, Any]:
    """A row of producer_id_rates over its quota."""
    return {
        "cluster_id": "c1",
        "event_date": at.date(),
        "event_time": at,
        "broker_id": 1,
        "principal": principal,
        "kind": "allocation",
        "rate_per_s": 12.34,
        "quota_per_s": 1.5,
        "throttle_time_ms": 3_000,
        "is_violating": True,
    } | others
