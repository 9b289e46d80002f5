"""In a catalog Spark rolls `quota_usage` up: to the rows that DuckDB makes of a folder."""

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.maintenance import upkeep
from quotaflow.pipelines.maintenance.roll_up import RollUp
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

from .quota_windows import MIDNIGHT, NOW, days, in_order, table

pytestmark = [pytest.mark.spark, pytest.mark.faults]
Row = dict[str, Any]


def windows() -> list[Row]:
    dice = random.Random(7)
    return [
        row
        | {"client_id": client, "quota_level": level, "quota": None if level is None else 1e5}
        | {"throttled_requests": thrown, "throttle_time_ms": thrown * 1.5}
        | {"throttled_by": "producer_byte_rate" if thrown else None}
        for row in days(9)
        for client, level in (("a", None), ("b", 3), ("c", 1))
        for thrown in [dice.choice((0, 0, 2))]
    ]


def test_spark_makes_the_rows_that_duckdb_makes(
    spark: SparkSession, catalog: Warehouse, tmp_path: Path
) -> None:
    folder = Warehouse(WarehouseSection(path=str(tmp_path)))
    rows, messages = dict[str, list[Row]](), list[str]()
    for name, warehouse in (("folder", folder), ("catalog", catalog)):
        conf = config.Conf(warehouse=warehouse.conf)
        warehouse.ensure(lambda: spark, [TABLES["quota_usage"], PIPELINE_PROGRESS])
        row_writer.append(lambda: spark, warehouse, TABLES["quota_usage"], table(windows()))
        rolling = RollUp(lambda: spark, conf, warehouse, messages.append)
        rolling.run(rolling.due(NOW))
        assert not rolling.due(NOW)
        stored = warehouse.read(spark, "quota_usage").toArrow().cast(TABLES["quota_usage"].arrow)
        rows[name] = [_sorted_lists(row) for row in in_order(stored)]
    assert rows["catalog"] == rows["folder"]
    assert {row["rolled_up_s"] for row in rows["folder"]} == {None, 60, 3_600}
    assert len(messages) == len(set(messages)) * 2, "the same ranges"


def _sorted_lists(row: Row) -> Row:
    """With histograms in one order: engines place nulls differently."""
    lists = ("usage_histogram", "user_windows")
    return row | {name: row[name] and sorted(row[name], key=str) for name in lists}


def test_upkeep_rolls_up_before_it_compacts(spark: SparkSession, tmp_path: Path) -> None:
    conf = config.Conf(warehouse=WarehouseSection(path=str(tmp_path)))
    warehouse, messages = Warehouse(conf.warehouse), list[str]()
    warehouse.ensure(lambda: spark, [TABLES["quota_usage"]])
    row_writer.append(lambda: spark, warehouse, TABLES["quota_usage"], table(windows()))
    upkeep.run_upkeep(conf, ["quota_usage"], NOW, messages.append, dry=True)
    assert "would be rolled up to rows of hours" in " ".join(messages)
    assert warehouse.read(spark, "quota_usage").where("rolled_up_s IS NOT NULL").count() == 0
    (outcome,) = upkeep.run_upkeep(conf, ["quota_usage"], NOW, messages.append)
    assert outcome.files_after == 9
    old = (
        warehouse.read(spark, "quota_usage").where("rolled_up_s IS NULL").agg({"event_time": "min"})
    )
    assert old.toArrow().to_pylist()[0]["min(event_time)"] > MIDNIGHT + timedelta(days=7)
    messages.clear()
    upkeep.run_upkeep(conf, ["quota_usage"], NOW, messages.append)
    assert not [line for line in messages if "rolled up" in line]
