"""One object of opened tables for a command."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.feedback.planning import planning
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.tables import CatalogTables, open_tables
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import BROKERS

from ...delta_tables import NOON, Fill
from ...schemas.views.view_tables import make_tables_and_answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = "SELECT count(*) AS n FROM brokers"
ROW = {"cluster_id": "c1", "broker_id": 1, "event_time": NOON, "is_removed": False}


def test_a_plan_opens_each_table_once(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tables_and_answers(warehouse, {})
    opened = Counter[str]()
    delta_table = deltalake.DeltaTable

    def counted(place: str | Path, **options: Any) -> deltalake.DeltaTable:
        opened[Path(place).name] += 1
        return delta_table(place, **options)

    monkeypatch.setattr(deltalake, "DeltaTable", counted)
    conf = config.Conf(warehouse=warehouse.conf)
    planning.make(context.of_plans(conf), open_tables(conf), datetime.now(UTC))
    assert opened["settings"] == 1
    assert opened.most_common(1)[0][1] == 1


def test_opened_tables_keep_their_version_until_they_are_opened_again(
    warehouse: Warehouse, fill: Fill
) -> None:
    conf = config.Conf(warehouse=warehouse.conf)
    tables = open_tables(conf)
    assert not tables.is_made("brokers")
    fill("brokers", [ROW])
    assert tables.is_made("brokers")
    assert tables.rows(COUNT) == [{"n": 1}]
    fill("brokers", [ROW])
    assert tables.rows(COUNT) == [{"n": 1}]
    assert open_tables(conf).rows(COUNT) == [{"n": 2}]


def test_rows_are_read_as_arrow_in_the_types_that_a_table_declares(
    warehouse: Warehouse, fill: Fill
) -> None:
    fill("brokers", [ROW])
    schema = pa.schema([BROKERS.arrow.field(name) for name in ("event_time", "host", "broker_id")])
    query = "SELECT broker_id, host, event_time FROM brokers"
    rows = open_tables(config.Conf(warehouse=warehouse.conf)).read(query, schema)
    assert rows == pa.Table.from_pylist([ROW], schema=schema)


@pytest.mark.spark
def test_a_catalog_is_read_through_one_session(
    spark: "SparkSession", catalog: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = []

    def get(_: object) -> "SparkSession":
        sessions.append(spark)
        return spark

    monkeypatch.setattr(session, "get", get)
    tables = open_tables(config.Conf(warehouse=catalog.conf))
    assert isinstance(tables, CatalogTables)
    assert not tables.is_made("brokers")
    catalog.ensure(lambda: spark, [BROKERS])
    assert tables.is_made("brokers")
    assert tables.rows(COUNT) == [{"n": 0}]
    assert tables.rows("SELECT * FROM current_brokers") == []
    assert len(sessions) == 1


@pytest.mark.spark
def test_a_table_of_a_catalog_that_was_never_made_may_count_as_empty(
    spark: "SparkSession",
) -> None:
    conf = config.WarehouseSection(catalog_schema="spark_catalog.nothing_made")
    tables = CatalogTables(Warehouse(conf), lambda: spark).with_empty(frozenset({BROKERS.name}))
    assert tables.rows(COUNT) == [{"n": 0}]
    assert tables.read("SELECT * FROM brokers", BROKERS.arrow).num_rows == 0
    spark.catalog.dropTempView(BROKERS.name)
