"""Usage of quotas kept from a stream equals the rule over all, also where quotas are known late."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.results.quotas import quota_usage
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.quotas import QUOTA_USAGE

from .quota_rows import CONTEXT, Row, at, frame, made_up_quotas, made_up_requests, rule_inputs


def content(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows.collect()), key=str)


@pytest.mark.faults
@pytest.mark.spark
def test_any_split_gives_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    dice, result = random.Random(11), quota_usage.result(QuotasSection())
    facts, quotas = made_up_requests(dice)[:900], made_up_quotas(dice)
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    made = ["requests", "pipeline_progress", "quota_usage", *CONTEXT]
    warehouse.ensure(spark, [TABLES[name] for name in made])
    maintainer = ResultMaintainer((result,), config.Conf())

    def keep(facts: DataFrame, batch: Batch) -> None:
        maintainer.write(maintainer.arrivals(facts), batch)

    def put(name: str, rows: list[Row]) -> DataFrame:
        written = frame(spark, name, rows)
        warehouse.write(written.write.format("delta").mode("append"), name)
        return written

    dice.shuffle(facts)
    put("client_quotas", [row for row in quotas if row["event_time"] <= at(20)])
    keep(put("requests", facts[:600]), Batch(warehouse, "job", "query", 0))
    # A snapshot comes between two batches: it changes windows that were computed without it.
    put("client_quotas", [row for row in quotas if row["event_time"] > at(20)])
    keep(put("requests", facts[600:]), Batch(warehouse, "job", "query", 1))
    kept = warehouse.read(spark, "quota_usage").select(QUOTA_USAGE.column_names)
    whole = quota_usage.usage(
        rule_inputs(spark, facts, {"client_quotas": quotas}), conf=QuotasSection()
    )
    assert content(kept) == content(whole)
    assert kept.where("quota IS NOT NULL").count() > 100
