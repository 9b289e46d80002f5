"""Tables of view tests are in memory: see memory_tables.py. `folder_warehouse` has real ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .memory_tables import MemoryTables


@pytest.fixture
def warehouse() -> MemoryTables:
    """Tables in memory without rows."""
    return MemoryTables()


@pytest.fixture
def fill(warehouse: MemoryTables) -> Callable[[str, list[dict[str, Any]]], None]:
    """Appends rows to a table of these; columns not given are null."""
    return warehouse.append


@pytest.fixture
def folder_warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse in an empty folder."""
    return Warehouse(config.WarehouseSection(path=str(tmp_path / "warehouse")))
