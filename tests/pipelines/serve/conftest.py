"""One warehouse with hostile names for all tests of pages."""

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...schemas.views.view_tables import make_tables
from .serving_pages import CONTENT


@pytest.fixture(scope="package")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Tables with names that attack pages, scripts and queries."""
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("filled"))))
    make_tables(warehouse, CONTENT)
    return warehouse
