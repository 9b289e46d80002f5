"""Offsets and faults kept from a stream equal the rules over all, whatever the split."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results.reads import fetch_faults, replica_offsets
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from .replica_rows import Row, answered, broker, fetch, frame, replica, seen

MINUTES = 5
RESULTS = (replica_offsets.result(), fetch_faults.result())
CONTEXT = {
    "topics": [seen(60, topic_id="id1", topic="t1")],
    "replicas": [replica(n, 60) for n in (1, 2, 3)],
    "brokers": [broker(n, "az-a", 60) for n in (1, 2, 3)],
}


def made_up(dice: random.Random) -> Row:
    """A fetch at a time of its own, of one or two partitions."""
    return fetch(
        dice.randrange(MINUTES * 60_000) / 1_000,
        dice.choice([1, 2, 3]),
        *(made_up_partition(dice) for _ in range(dice.choice([1, 2]))),
        client_id=dice.choice(["reader", None]),
        connection_id=dice.choice(["one", "two"]),
        replica_id=dice.choice([None, None, None, 3]),
    )


def made_up_partition(dice: random.Random) -> Row:
    names = dice.choice([{"topic_id": "id1"}, {"topic_id": None, "topic": "t1"}])
    others = {"fetch_offset": dice.choice([None, 5, 50, 95, 120])}
    if dice.random() < 0.2:
        return answered(0, error_code=dice.choice([1, 1, 6]), high_watermark=-1, **names, **others)
    return answered(
        0,
        preferred_read_replica=dice.choice([-1, -1, -1, 2]),
        high_watermark=dice.choice([90, 100, 110]),
        log_start_offset=dice.choice([10, 20]),
        follower_log_start_offset=dice.choice([None, 30]),
        **names,
        **others,
    )


def content(rows: DataFrame, result: Result) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in rows.select(result.table.column_names).collect()), key=str)


@pytest.mark.faults
@pytest.mark.spark
def test_any_split_gives_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(392)
    facts = [made_up(dice) for _ in range(400)]
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    made = ["fetches", "pipeline_progress", *CONTEXT, *(r.table.name for r in RESULTS)]
    warehouse.ensure(spark, [TABLES[name] for name in made])
    maintainer = ResultMaintainer(RESULTS, config.Conf())

    def keep(facts: DataFrame, batch: Batch) -> None:
        maintainer.write(maintainer.arrivals(facts), batch)

    def put(name: str, rows: list[Row]) -> DataFrame:
        of_cluster = [row | {"cluster_id": "c"} for row in rows]
        written = frame(spark, TABLES[name].arrow, of_cluster)
        warehouse.write(written.write.format("delta").mode("append"), name)
        return written

    for batch_id, start in enumerate(range(0, 400, 150)):
        if batch_id == 1:
            for name, rows in CONTEXT.items():
                put(name, rows)
        batch = Batch(warehouse, "job", "query", batch_id)
        keep(put("fetches", facts[start : start + 150]), batch)
    for result in RESULTS:
        names = [context.table.name for context in result.lookups]
        inputs = RuleInputs(
            result.relevant_facts(warehouse.read(spark, "fetches")),
            lookups={name: warehouse.read(spark, name) for name in names},
        )
        kept = content(warehouse.read(spark, result.table.name), result)
        assert kept == content(result.compute(inputs), result)
        assert len(kept) > MINUTES
