"""Answers in a catalog are those of a folder, also where Spark computes them."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.results.answers import in_catalog
from quotaflow.pipelines.results.answers.refresh import not_up_to_date, refresh
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.terminal import values
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ....cases import cases
from ....delta_tables import NOON, violation
from ....rows import HOSTILE, Row
from ....schemas.views.filled_views import FILLED
from ....schemas.views.view_tables import make_inputs, no_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.faults]
LATER = NOON + timedelta(seconds=1)
NOW = NOON + timedelta(days=1)
SCHEMA = "spark_catalog.answers"
SOME = ["producer_id_bursts", "recent_violations"]
NAMES = [answer.name for answer in ANSWERS]


@pytest.fixture
def catalog(spark: "SparkSession", tmp_path: Path) -> Iterator[Warehouse]:
    """A catalog's schema with the tables that answers read."""
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} LOCATION '{tmp_path / 'schema'}'")
    made = Warehouse(
        config.WarehouseSection(catalog_schema=SCHEMA, checkpoints=str(tmp_path / "checkpoints"))
    )
    needed = {name for answer in ANSWERS for name in answer.inputs} - set(NAMES)
    made.ensure(lambda: spark, [TABLES[name] for name in sorted(needed)])
    for name in sorted(needed & FILLED.keys()):
        add(spark, made, name, FILLED[name])
    yield made
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def add(spark: "SparkSession", warehouse: Warehouse, name: str, rows: list[Row]) -> None:
    content = pa.Table.from_pylist(rows, schema=TABLES[name].arrow)
    writer = frames.from_arrow(spark, content).write.format("delta").mode("append")
    warehouse.write(writer, name)


def lines(rows: pa.Table) -> list[str]:
    return sorted(values.json_line(row) for row in values.rows(rows.to_reader()))


@cases(
    "names_and_bounds",
    ("all", (NAMES, {})),
    ("some, of a part of large inputs", (SOME, {"SMALL_BYTES": 0})),
    ("some, of inputs too large for this process", (SOME, {"SMALL_BYTES": 0, "MAX_VALUES": 0})),
)
def test_answers_are_those_of_a_folder_and_change_with_their_inputs(
    spark: "SparkSession",
    catalog: Warehouse,
    warehouse: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
    names_and_bounds: tuple[list[str], dict[str, int]],
) -> None:
    names, bounds = names_and_bounds
    for name, value in bounds.items():
        monkeypatch.setattr(in_catalog, name, value)
    chosen = [answer for answer in ANSWERS if answer.name in names]

    def refreshed() -> set[str]:
        return set(refresh(catalog.conf, lambda: spark, NOW, pytest.fail, chosen))

    make_inputs(warehouse, FILLED)
    refresh(warehouse.conf, no_session, NOW, pytest.fail, chosen)
    assert refreshed() == set(names)
    reader = FolderReader(warehouse)
    for name in names:
        rows = catalog.read(spark, name).toArrow().cast(TABLES[name].arrow)
        expected = reader.read(f"SELECT * FROM {name}", rows.schema)
        assert lines(rows) == lines(expected), name
    assert refreshed() == set()
    add(spark, catalog, "producer_id_rates", [violation("User:" + HOSTILE, LATER)])
    old = not_up_to_date(catalog.conf, lambda: spark, NOW + timedelta(hours=1), timedelta(0), names)
    # With all that read it, and those that read these.
    stale = {"recent_violations", "producer_id_offenders"}
    stale |= {"offender_proposals", "default_quota_proposals"}
    assert old.keys() == stale & set(names)
    assert refreshed() == {"recent_violations"}
    assert not spark.catalog.tableExists("producer_id_rates")
