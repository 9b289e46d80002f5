"""One warehouse with hostile clients, and its sections: making them takes seconds."""

from collections.abc import Sequence

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.report.report import sections
from quotaflow.pipelines.report.section import ReportSection
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...schemas.views.view_tables import make_tables_and_answers
from .pages import CONTENT, hostile, scope


@pytest.fixture(scope="package")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Tables with rows of every kind, under every hostile name."""
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("filled"))))
    rows = {
        table: [hostile(row, place + n) for n in range(2) for place, row in enumerate(content)]
        for table, content in CONTENT.items()
    }
    make_tables_and_answers(warehouse, rows)
    return warehouse


@pytest.fixture(scope="package")
def report_sections(filled: Warehouse) -> Sequence[ReportSection]:
    """Every section of the report on the filled warehouse."""
    return sections(scope(filled))
