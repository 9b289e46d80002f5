"""docs/notebook.ipynb: its cells run over filled tables, in order, without a service of Jupyter."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..live import fetched
from ..schemas.views.filled_views import FILLED
from ..schemas.views.view_tables import make_tables_and_answers

FILE = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
NOTEBOOK: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
CHARTS = 3
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def conf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The conf of tables with rows for every view."""
    folder = tmp_path_factory.mktemp("filled")
    place = str(folder / "tables")
    make_tables_and_answers(Warehouse(config.WarehouseSection(path=place)), FILLED)
    file = folder / "conf.yaml"
    file.write_text(yaml.safe_dump({"warehouse": {"path": place}}), encoding="utf-8")
    return file


def displayed(cell: str, names: dict[str, Any]) -> Any:
    """What a notebook shows below a cell: the value of its last line, if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(FILE), "exec"), names)  # noqa: S102  a file of ours
    return eval(ast.unparse(last), names) if last else None  # noqa: S307


def is_empty(value: Any) -> bool:
    return value.empty if isinstance(value, pd.DataFrame) else not value.has_data()


@pytest.mark.faults
def test_every_cell_runs_and_shows_rows_or_a_chart(
    conf_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTAFLOW_CONF", str(conf_file))
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.syspath_prepend(fetched.from_pypi("matplotlib==3.10.7"))
    names: dict[str, Any] = {"__name__": "__main__"}
    first, *others = (displayed(cell, names) for cell in CODE)
    assert first is None
    assert [CODE[n + 1] for n, value in enumerate(others) if is_empty(value)] == []
    assert sum(not isinstance(value, pd.DataFrame) for value in others) == CHARTS


def test_it_has_the_form_of_a_notebook_and_keeps_no_output() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(ids) == len(set(ids))
    for cell in NOTEBOOK["cells"]:
        assert cell["source"]
        # Outputs have names of clients, and grow old.
        assert no_output(cell)


def no_output(cell: Mapping[str, Any]) -> bool:
    return cell["cell_type"] == "markdown" or (
        cell["outputs"] == [] and cell["execution_count"] is None
    )
