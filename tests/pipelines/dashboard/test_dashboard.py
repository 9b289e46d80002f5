"""The dashboard: its queries run over the views, and its widgets show their columns."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from quotaflow.pipelines import config
from quotaflow.pipelines.dashboard.__main__ import text
from quotaflow.pipelines.dashboard.lakeview import CLUSTER, TIME_RANGE, WIDTH
from quotaflow.pipelines.dashboard.questions import QUESTIONS
from quotaflow.pipelines.terminal import values
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.spark_reader import check_query
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import Row
from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_tables_and_answers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
FILE = ROOT / "dashboard.lvdash.json"
MADE: dict[str, Any] = json.loads(text())
# What each kind of widget encodes, and the version of its spec that Databricks reads.
KINDS = {
    **{"bar": 3, "line": 3, "heatmap": 3, "counter": 2, "table": 1},
    **{"filter-multi-select": 2, "filter-date-range-picker": 2},
}
ABOUT_NOW = {
    *("cluster", "headroom", "replication_throttles_that_stand", "fetch_settings"),
    *("changes_that_wait", "jobs", "checks_that_fail", "why_groups_lag"),
    "steps_that_keep_bytes_in_their_rack",
}
"""Datasets about the present, which the chosen days do not change."""
ALWAYS = date(2000, 1, 1), date(2099, 12, 31)
BEFORE = date(2000, 1, 1), date(2000, 1, 2)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Tables with rows of every kind."""
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path_factory.mktemp("filled"))))
    make_tables_and_answers(warehouse, FILLED)
    return warehouse


@pytest.fixture(scope="module")
def answers(filled: Warehouse) -> dict[str, list[Row]]:
    """The rows of each dataset over the filled tables."""
    reader = FolderReader(filled)
    return {name: reader.rows(dataset.between(*ALWAYS)) for name, dataset in QUESTIONS.items()}


@pytest.fixture(scope="module")
def in_spark(filled: Warehouse, spark: "SparkSession") -> "SparkSession":
    """A session with every table and the rows of every view, by name."""
    for name in TABLES:
        filled.read(spark, name).createOrReplaceTempView(name)
    reader = FolderReader(filled)
    for name in views.load():
        # By DuckDB: Spark takes minutes for rows that are equal, as test_alike.py shows.
        rows = reader.query(f"SELECT * FROM {name}").read_all()
        spark.createDataFrame(rows).createOrReplaceTempView(name)
    return spark


def lines(batches: "pa.RecordBatchReader") -> list[str]:
    return sorted(values.json_line(row) for row in values.rows(batches))


def placed() -> Iterator[tuple[str, dict[str, Any]]]:
    for page in MADE["pages"]:
        for each in page["layout"]:
            yield page["displayName"], each


def encoded(spec: dict[str, Any]) -> Iterator[str]:
    for encoding in spec["encodings"].values():
        for each in encoding if isinstance(encoding, list) else [encoding]:
            yield each["fieldName"]


def test_the_bundle_makes_the_file_of_its_dashboard_without_any_package(tmp_path: Path) -> None:
    """As the CLI does before it reads the bundle: in its folder, by a shell."""
    bundle = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    script = bundle["experimental"]["scripts"]["preinit"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "src").symlink_to(ROOT / "src")
    without_packages = script.replace("python ", "python -S ")
    subprocess.run(["sh", "-c", without_packages], cwd=tmp_path, env={"PATH": path}, check=True)
    assert (tmp_path / FILE.name).read_text(encoding="utf-8") == text()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_rows_of_every_cluster(question: str, answers: dict[str, list[Row]]) -> None:
    check_query(QUESTIONS[question].between(*ALWAYS))
    assert answers[question], "the made-up rows answer it"
    assert {row[CLUSTER] for row in answers[question]} == {"c1"}


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.parametrize("question", QUESTIONS)
def test_spark_answers_as_the_reader_does(
    question: str, filled: Warehouse, in_spark: "SparkSession"
) -> None:
    sql = QUESTIONS[question].between(*ALWAYS)
    expected = lines(FolderReader(filled).query(sql))
    assert lines(in_spark.sql(sql).toArrow().to_reader()) == expected
    assert expected


def test_widgets_show_columns_of_their_datasets(answers: dict[str, list[Row]]) -> None:
    columns = {name: set(rows[0]) for name, rows in answers.items()}
    for _, each in placed():
        for query in each["widget"].get("queries", []):
            declared = columns[query["query"]["datasetName"]]
            fields = {field["name"] for field in query["query"].get("fields", [])}
            assert fields - {f"{CLUSTER}_associativity"} <= declared
        spec = each["widget"].get("spec")
        if spec and "filter" not in spec["widgetType"]:
            shown = set(encoded(spec))
            assert shown == {f["name"] for f in each["widget"]["queries"][0]["query"]["fields"]}
            assert shown, "nothing to show"


def test_widgets_are_of_kinds_that_are_known() -> None:
    for _, each in placed():
        spec = each["widget"].get("spec")
        if spec is None:
            assert each["widget"]["multilineTextboxSpec"]["lines"]
        else:
            assert spec["version"] == KINDS[spec["widgetType"]]
            assert spec["frame"]["title"]


def tables() -> Iterator[tuple[str, dict[str, Any]]]:
    """The dataset and the spec of each table."""
    for _, each in placed():
        spec = each["widget"].get("spec", {})
        if spec.get("widgetType") == "table":
            yield each["widget"]["queries"][0]["query"]["datasetName"], spec


def test_clients_names_are_neither_html_nor_links() -> None:
    for _, spec in tables():
        assert not spec["allowHTMLByDefault"]
        for column in spec["encodings"]["columns"]:
            assert not column["allowHTML"]
            assert not column["highlightLinks"]
            assert column["displayAs"] != "link"


# What every column of the 23 tables of databricks/bundle-examples has; formats depend on the type.
SAVED_KEYS = {
    *("fieldName", "title", "order", "visible", "type", "displayAs", "alignContent"),
    *("allowHTML", "allowSearch", "booleanValues", "highlightLinks", "preserveWhitespace"),
    *("imageHeight", "imageTitleTemplate", "imageUrlTemplate", "imageWidth", "useMonospaceFont"),
    *("linkOpenInNewTab", "linkTextTemplate", "linkTitleTemplate", "linkUrlTemplate"),
}
SAVED_TABLE = {
    *("version", "widgetType", "encodings", "frame", "condensed", "allowHTMLByDefault"),
    *("invisibleColumns", "itemsPerPage", "paginationSize", "withRowNumber"),
}
FORMATS = {"integer": {"numberFormat"}, "float": {"numberFormat"}, "datetime": {"dateTimeFormat"}}


def test_a_table_has_the_keys_that_databricks_saves() -> None:
    for _, spec in tables():
        assert spec.keys() == SAVED_TABLE
        for column in spec["encodings"]["columns"]:
            formats = FORMATS.get(column["type"], set())
            assert column.keys() == SAVED_KEYS | {"displayName"} | formats


KINDS_OF_COLUMNS = {
    **{"int32": "integer", "int64": "integer", "double": "float", "bool": "boolean"},
    **{"string": "string", "timestamp[us, tz=UTC]": "datetime"},
    "list<l: struct<signal: string, value: double, unit: string>>": "complex",
}


def test_a_column_of_a_table_has_the_type_of_its_values(filled: Warehouse) -> None:
    reader = FolderReader(filled)
    shown = {
        (dataset, column["fieldName"]): column["type"]
        for dataset, spec in tables()
        for column in spec["encodings"]["columns"]
    }
    schemas = {
        name: reader.query(question.between(*ALWAYS)).schema
        for name, question in QUESTIONS.items()
        if name in {dataset for dataset, _ in shown}
    }
    assert shown == {
        (dataset, field): KINDS_OF_COLUMNS[str(schemas[dataset].field(field).type)]
        for dataset, field in shown
    }


def test_every_question_is_shown_and_filtered_by_cluster() -> None:
    (filters,) = (page for page in MADE["pages"] if page["pageType"].endswith("GLOBAL_FILTERS"))
    shown = {
        query["query"]["datasetName"]
        for page in MADE["pages"]
        if page is not filters
        for each in page["layout"]
        for query in each["widget"].get("queries", [])
    }
    assert shown == QUESTIONS.keys()
    choice, _ = filters["layout"]
    assert [q["query"]["datasetName"] for q in choice["widget"]["queries"]] == list(QUESTIONS)


def test_every_question_has_a_time_range_or_is_about_now() -> None:
    ranged = {name for name, question in QUESTIONS.items() if question.has_time_range}
    assert ranged == QUESTIONS.keys() - ABOUT_NOW
    for dataset in MADE["datasets"]:
        keywords = [parameter["keyword"] for parameter in dataset.get("parameters", [])]
        assert keywords == ([TIME_RANGE] if dataset["name"] in ranged else [])
    (filters,) = (page for page in MADE["pages"] if page["pageType"].endswith("GLOBAL_FILTERS"))
    picker = filters["layout"][1]["widget"]
    datasets = {query["name"]: query["query"]["datasetName"] for query in picker["queries"]}
    assert set(datasets.values()) == ranged
    assert [each["queryName"] for each in picker["spec"]["encodings"]["fields"]] == list(datasets)


# The chosen days do not change what shows the present.
GOES_ON = {"attention", "moves", "alerts"}


def test_days_without_rows_have_none(filled: Warehouse) -> None:
    reader = FolderReader(filled)
    seen = {
        name: reader.rows(question.between(*BEFORE))
        for name, question in QUESTIONS.items()
        if question.has_time_range
    }
    assert {name for name, rows in seen.items() if rows} <= GOES_ON
    ended = {"in_place", "done", "cancelled"}
    assert not [move for move in seen["moves"] if move["state"] in ended]
    assert all(alert["is_open"] for alert in seen["alerts"])


def test_names_are_unique() -> None:
    names = [page["name"] for page in MADE["pages"]]
    names += [each["widget"]["name"] for _, each in placed()]
    names += [dataset["name"] for dataset in MADE["datasets"]]
    assert len(names) == len(set(names))


def test_nothing_lies_over_anything_else() -> None:
    def cells(at: dict[str, int]) -> set[tuple[int, int]]:
        return {(at["x"] + x, at["y"] + y) for x in range(at["width"]) for y in range(at["height"])}

    for (page, one), (other_page, other) in combinations(placed(), 2):
        if page == other_page:
            assert not cells(one["position"]) & cells(other["position"])
    for _, each in placed():
        assert each["position"]["x"] + each["position"]["width"] <= WIDTH


def test_queries_name_no_catalog() -> None:
    """Catalog and schema come from the bundle."""
    for question in QUESTIONS.values():
        for name in TABLES:
            assert f".{name}" not in question.sql


def test_the_bundle_has_the_file_and_where_its_tables_are() -> None:
    resource = yaml.safe_load((ROOT / "dashboards.yaml").read_text(encoding="utf-8"))
    (board,) = resource["resources"]["dashboards"].values()
    assert (ROOT / board["file_path"]).resolve() == FILE
    assert board["dataset_catalog"] == "${var.catalog}"
    assert board["dataset_schema"] == "${resources.schemas.tables.name}"
