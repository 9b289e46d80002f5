"""A scene in a folder, where no table needs a session."""

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .snapshot_scenes import NEEDED, Scene


@pytest.fixture
def scene(warehouse: Warehouse) -> Scene:
    made = Scene(warehouse.conf)
    made.make(*NEEDED)
    return made
