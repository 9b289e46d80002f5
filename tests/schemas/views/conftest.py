"""Tables of view tests are in memory: see memory_tables.py. `folder_warehouse` has real ones."""

from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse


@pytest.fixture
def folder_warehouse(tmp_path: Path) -> Warehouse:
    """A warehouse in an empty folder."""
    return Warehouse(config.WarehouseSection(path=str(tmp_path / "warehouse")))
