"""What the demo shows: each query runs on the tables of today, and each sentence is one."""

import re

import pytest

from quotaflow.demo import shown
from quotaflow.pipelines import config
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..schemas.views.view_tables import make_tables, rows

ALL = (*shown.PLAN, *shown.TABLES, *shown.CHECKED, *shown.EFFECT)
QUERIES = [arguments[1] for _, arguments in ALL if arguments[0] == "sql"]
SENTENCES = [
    shown.PAST,
    shown.BEFORE,
    shown.AMID,
    shown.AFTER,
    shown.AGAIN,
    *(text for text, _ in ALL),
]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    made = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("empty"))))
    make_tables(made, {})
    return made


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_runs(query: str, empty: Warehouse) -> None:
    assert rows(empty, query) == []


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_begins_and_ends_as_one(text: str) -> None:
    assert re.fullmatch(r"(frank|mallory|dave|ivan|carol|apply|restore|[A-Z]).*\.", text)
