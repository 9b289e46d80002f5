"""docs/telemetry.md: every query in it runs as it stands."""

import re
from pathlib import Path

import pytest

from quotaflow.pipelines import config, views
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas import tables

from .view_rows import FILLED, make_tables, rows

DOC = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```$", DOC, re.M | re.S)
CONFS = re.findall(r"^```yaml\n(.*?)^```$", DOC, re.M | re.S)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_page_runs_empty_and_filled(
    query: str, warehouse: Warehouse, tmp_path: Path
) -> None:
    make_tables(warehouse, {})
    assert rows(warehouse, query) == []
    filled = Warehouse(warehouse.conf.model_copy(update={"path": str(tmp_path / "filled")}))
    make_tables(filled, FILLED)
    assert rows(filled, query)


def test_the_page_asks_only_what_is_there() -> None:
    asked = set(re.findall(r"^FROM (\w+)", DOC, re.M))
    commands = re.findall(r"^```\nquotaflow ", DOC, re.M)
    assert len(QUERIES) + len(CONFS) + len(commands) == DOC.count("```") / 2
    assert asked <= views.load().keys() | tables.TABLES.keys()


@pytest.mark.parametrize("text", CONFS)
def test_a_conf_of_the_page_is_valid(text: str, tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(text)
    assert config.load(file) != config.Conf()
