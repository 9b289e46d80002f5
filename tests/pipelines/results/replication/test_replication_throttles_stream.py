"""Throttles kept from a stream equal the rules over all, also where changes come late."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from . import throttle_rows
from .throttle_rows import (
    IN_ORDER,
    SNAPSHOTS,
    Row,
    alter,
    computed,
    fetch,
    frame,
    in_sync,
    names,
    part,
    produce,
    reassign,
    seen,
)

MINUTES = 5
TOPICS = {"orders": "id1", "clicks": "id2"}


def made_up_part(dice: random.Random) -> Row:
    size = dice.choice([None, 0, 1_000, 2_000_000])
    high_watermark = None if size is None else dice.randrange(100)
    ids = {"topic_id": dice.choice([*TOPICS.values()]), "partition": dice.choice([0, 0, 1])}
    return part(size, fetch_offset=dice.randrange(100), high_watermark=high_watermark, **ids)


def made_up_alter(dice: random.Random, second: float) -> Row:
    if dice.random() < 0.5:
        key = dice.choice([throttle_rows.LEADERS, throttle_rows.FOLLOWERS])
        operand = dice.choice(["0:1", "0:2,1:1", "0:2,0:3", "*"])
        operation = dice.randrange(4)
        change = (key, operation, None if operation == throttle_rows.DELETE else operand)
        return alter(second, throttle_rows.TOPIC, dice.choice([*TOPICS]), change)
    key = dice.choice([throttle_rows.LEADER_RATE, throttle_rows.FOLLOWER_RATE])
    operation = dice.choice([throttle_rows.SET, throttle_rows.SET, throttle_rows.DELETE])
    value = None if operation else dice.choice(["1000", "500000"])
    return alter(second, throttle_rows.BROKER, dice.choice(["", "1", "2"]), (key, operation, value))


def made_up_request(dice: random.Random) -> Row:
    second = dice.randrange(MINUTES * 60_000) / 1_000
    kind = dice.random()
    if kind < 0.8:
        parts = [made_up_part(dice) for _ in range(dice.randrange(3))]
        forgotten = [{"topic_id": "id1", "partition": 0}] if dice.random() < 0.1 else []
        return fetch(
            second, dice.choice([1, 1, 2]), dice.choice([2, 3]), *parts, forgotten=forgotten
        )
    if kind < 0.9:
        return produce(second, 1, part(500))
    if kind < 0.95:
        return made_up_alter(dice, second)
    if kind < 0.97:
        return in_sync(second, "id1", 1, *dice.sample([2, 3], dice.randrange(3)))
    if kind < 0.985:
        return reassign(second, "orders", dice.choice([[2], [1, 3], None]))
    return names(second, *dice.sample([*TOPICS.items()], 1))


def made_up_snapshots(dice: random.Random) -> dict[str, list[Row]]:
    """What snapshots saw change after the minutes began; the first one is of no config we set."""
    snapshots: dict[str, list[Row]] = {name: [] for name in SNAPSHOTS}
    for second in (100, 400):
        snapshots["topics"].append(seen(second, topic_id="id2", topic="clicks"))
        snapshots["brokers"] += [seen(second, broker_id=id_) for id_ in dice.sample([1, 2, 3], 2)]
        snapshots["replicas"] += [
            seen(second, topic_id="id1", topic="orders", partition=0, broker_id=id_)
            | {"is_in_sync": dice.random() < 0.5}
            for id_ in (2, 3)
        ]
    snapshots["configs"] = [
        throttle_rows.config(100, "broker", "1", "log.dir", "d"),
        throttle_rows.config(400, "broker", "1", throttle_rows.LEADER_RATE, "700000"),
        throttle_rows.config(230, "topic", "orders", throttle_rows.LEADERS, "0:1"),
    ]
    return snapshots


def content(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows.collect()), key=str)


@pytest.mark.faults
@pytest.mark.spark
def test_any_split_gives_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(73)
    facts = [made_up_request(dice) | {"cluster_id": "c"} for _ in range(900)]
    snapshots = {
        name: [row | {"cluster_id": "c"} for row in rows]
        for name, rows in made_up_snapshots(dice).items()
    }
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    made = [
        "requests",
        "pipeline_progress",
        *(each_result.table.name for each_result in IN_ORDER),
        *SNAPSHOTS,
    ]
    warehouse.ensure(spark, [TABLES[name] for name in made])
    maintainer = ResultMaintainer(IN_ORDER, config.Conf())

    def keep(facts: DataFrame, batch: Batch) -> None:
        maintainer.write(maintainer.arrivals(facts), batch)

    numbered = frame(spark, "requests", facts).persist()

    def put(name: str, rows: DataFrame) -> DataFrame:
        warehouse.write(rows.write.format("delta").mode("append"), name)
        return rows

    def batch(n: int) -> None:
        # What is late by a batch is spread over all minutes.
        split = (numbered["source_offset"] * 7 % 10 / 4).cast("int") == n
        keep(put("requests", numbered.where(split)), Batch(warehouse, "job", "query", n))

    def snapshot(*seconds: float) -> None:
        for name, rows in snapshots.items():
            at = [row for row in rows if row["event_time"] in {*map(throttle_rows.at, seconds)}]
            put(name, frame(spark, name, at))

    batch(0)
    snapshot(100)
    batch(1)
    snapshot(230, 400)
    batch(2)
    whole = computed(spark, facts, snapshots)
    for result in IN_ORDER:
        kept = warehouse.read(spark, result.table.name).select(result.table.column_names)
        expected = frame(spark, result.table.name, whole[result.table.name])
        assert content(kept) == content(expected.select(kept.columns)), result.table.name
    reasons = {row["reason"] for row in whole["replication_throttles"]}
    assert len(reasons) > 6
