"""Choices kept from a stream equal the rule over all, also where snapshots come between."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results.reads import preferred_replicas
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.rules.replica import RACK_AWARE

from .replica_rows import (
    CONTEXT,
    RACKS,
    Row,
    answered,
    at,
    broker,
    fetch,
    frame,
    replica,
    seen,
    selector,
)

MINUTES = 4


def made_up_fetches(dice: random.Random) -> list[Row]:
    """Fetches of consumers and followers, by topic names and ids."""
    return [
        fetch(
            dice.randrange(MINUTES * 60_000) / 1_000,
            dice.choice([1, 2, 3]),
            *(made_up_partition(dice) for _ in range(dice.randrange(4))),
            client_id=dice.choice(["reader", "other", None]),
            client_address=dice.choice(["10.1.0.1", "10.2.0.1", "0:0:0:0:0:0:0:1"]),
            rack_id=dice.choice(["az-a", "az-b", None]),
            replica_id=dice.choice([None, None, 3]),
            api_version=dice.choice([8, 17]),
        )
        for _ in range(600)
    ]


def made_up_partition(dice: random.Random) -> Row:
    n = dice.choice([1, 2, 3])
    names = dice.choice([{"topic_id": f"id{n}"}, {"topic_id": None, "topic": f"t{n}"}])
    return answered(
        dice.choice([0, None, 10, 1_000]),
        partition=dice.choice([0, 1]),
        preferred_read_replica=dice.choice([-1, -1, 2, 3]),
        high_watermark=dice.randrange(1_000),
        error_code=dice.choice([0, 0, 0, 1]),
        **names,
    )


def made_up_snapshots(dice: random.Random) -> dict[str, list[Row]]:
    """What snapshots saw change, in and after the minutes; one key changes once a time."""
    snapshots: dict[str, list[Row]] = {name: [] for name in CONTEXT}
    for second in (60, 100, 150, 230, 300):
        is_removed = dice.random() < 0.2
        n = dice.choice([1, 2])
        topic = {"topic_id": f"id{n}", "topic": f"t{n}"}
        snapshots["topics"].append(seen(second, **topic) | {"is_removed": is_removed})
        led = {"is_leader": dice.random() < 0.5, "is_in_sync": dice.random() < 0.7}
        snapshots["replicas"] += [
            replica(id_, second, **topic, partition=partition)
            | (led if second > 60 and id_ == 1 else {})
            | {"is_removed": is_removed and id_ == 3}
            for id_ in (1, 2, 3)
            for partition in (0, 1)
        ]
        id_ = dice.choice([1, 2, 3])
        snapshots["brokers"].append(broker(id_, dice.choice(["az-a", "az-b", None]), second))
        snapshots["configs"].append(
            selector(dice.choice([RACK_AWARE, None]), second) | {"entity_name": str(id_)}
        )
    return snapshots


def content(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows.collect()), key=str)


@pytest.mark.faults
@pytest.mark.spark
def test_any_split_gives_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    dice, result = random.Random(392), preferred_replicas.result(RACKS)
    facts, snapshots = made_up_fetches(dice), made_up_snapshots(dice)
    assert [len(facts), *(len(rows) for rows in snapshots.values())] == [600, 30, 5, 5, 5]
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    made = ["fetches", "pipeline_progress", result.table.name, *CONTEXT]
    warehouse.ensure(spark, [TABLES[name] for name in made])
    maintainer = ResultMaintainer((result,), config.Conf())

    def keep(facts: DataFrame, batch: Batch) -> None:
        maintainer.write(maintainer.arrivals(facts), batch)

    def put(name: str, rows: list[Row]) -> DataFrame:
        of_cluster = [row | {"cluster_id": "c"} for row in rows]
        written = frame(spark, TABLES[name].arrow, of_cluster)
        warehouse.write(written.write.format("delta").mode("append"), name)
        return written

    def snapshot(*seconds: int) -> None:
        for name, rows in snapshots.items():
            put(name, [row for row in rows if row["event_time"] in {*map(at, seconds)}])

    dice.shuffle(facts)
    keep(put("fetches", facts[:300]), Batch(warehouse, "job", "query", 0))
    # Snapshots come between batches: they change minutes that were computed without them, and the
    # first one all that were before it.
    snapshot(60, 100)
    keep(put("fetches", facts[300:500]), Batch(warehouse, "job", "query", 1))
    snapshot(150, 230, 300)
    keep(put("fetches", facts[500:]), Batch(warehouse, "job", "query", 2))
    kept = warehouse.read(spark, result.table.name).select(result.table.column_names)
    inputs = RuleInputs(
        result.relevant_facts(warehouse.read(spark, "fetches")),
        lookups={name: warehouse.read(spark, name) for name in CONTEXT},
    )
    whole = result.compute(inputs)
    assert content(kept) == content(whole)
    causes = {row["eligibility"] for row in kept.select("eligibility").distinct().collect()}
    assert causes >= {"known", "replicas_unknown", "leader_unknown", "racks_unknown"}
