"""The demo's last step: an object without rows has its reason, or the demo fails."""

from pathlib import Path

import pytest

from quotaflow.demo import completeness
from quotaflow.pipelines import config
from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ..schemas.views.filled_views import FILLED
from ..schemas.views.view_tables import make_tables

WITH_REASON = {name for name, head in {**TABLES, **views.load()}.items() if head.empty}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("warehouse")
    made = {name: rows for name, rows in FILLED.items() if name != "quarantine"}
    make_tables(Warehouse(config.WarehouseSection(path=str(path))), made)
    return path


def test_a_table_without_rows_fails_the_demo_and_one_with_a_reason_does_not(folder: Path) -> None:
    lines: list[str] = []
    with pytest.raises(JobError, match=r"no row came into .*quarantine") as caught:
        completeness.check(folder, lines.append, must_be_complete=True)
    assert "quarantine has none" in lines
    assert "tables and views have rows" in lines[0]
    assert not WITH_REASON & set(str(caught.value).removeprefix("no row came into ").split(", "))
    assert [line for line in lines if line.startswith("feedback_locks has none: it is empty while")]


def test_a_short_demo_only_says_what_is_missing(folder: Path) -> None:
    lines: list[str] = []
    completeness.check(folder, lines.append, must_be_complete=False)
    assert "quarantine has none" in lines


def test_few_objects_may_be_empty() -> None:
    # Each more is something that the demo does not show.
    assert {"feedback_locks", "log_start_divergence"} == WITH_REASON
