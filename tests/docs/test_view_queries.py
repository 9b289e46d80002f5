"""docs/*.md: every query in them runs as it stands."""

import re
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ..rows import Row
from ..schemas.views.filled_views import FILLED
from ..schemas.views.view_tables import make_tables_and_answers
from .pages import DOCS


def blocks(kind: str) -> list[str]:
    """What stands in the fenced blocks of a kind, in all pages."""
    fenced = re.compile(rf"^```{kind}\n(.*?)^```$", re.M | re.S)
    return [text for page in DOCS.values() for text in fenced.findall(page)]


def made(folder: Path, content: dict[str, list[Row]]) -> FolderReader:
    """One reader for all queries: it makes each view once."""
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_tables_and_answers(warehouse, content)
    return FolderReader(warehouse)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    return made(tmp_path_factory.mktemp("empty"), {})


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    return made(tmp_path_factory.mktemp("filled"), FILLED)


@pytest.mark.parametrize("query", blocks("sql"))
def test_a_query_of_a_page_runs_empty_and_filled(
    query: str, empty: FolderReader, filled: FolderReader
) -> None:
    assert empty.rows(query) == []
    assert filled.rows(query)


@pytest.mark.parametrize("page", DOCS)
def test_a_page_asks_only_what_is_there(page: str) -> None:
    text = DOCS[page]
    sources = set(re.findall(r"^FROM (\w+)", text, re.M))
    # Of other programs (sh) and what a command prints (text) nothing can be checked.
    blocks = re.findall(r"^```(?:sql|yaml|json|sh|text|\nquotaflow |\{toctree\})", text, re.M)
    assert len(blocks) == text.count("```") / 2
    assert sources <= views.load().keys() | TABLES.keys()


# A resource of Kubernetes is no conf.
CONFS = [text for text in blocks("yaml") if not text.startswith("apiVersion:")]


@pytest.mark.parametrize("text", CONFS)
def test_a_conf_of_a_page_is_valid(text: str, tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(text)
    assert config.load(file) != config.Conf()
