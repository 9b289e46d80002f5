"""What is wrong with an answer in SQL against the rule in Python: random rows."""

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines.results.reads.fetch_fault_kinds import with_bounds, with_fault

from ....oracle.rules import fetch_fault as rule
from ....oracle.rules.fetch_fault import FetchAnswer, ReplicaOffsets

SCHEMA = (
    "n INT, told ARRAY<STRUCT<broker_id: INT, is_before: BOOLEAN, is_leader: BOOLEAN, "
    "log_start_offset: BIGINT, least_end: BIGINT, greatest_end: BIGINT>>, broker_id INT, "
    "leader_in_snapshot INT, error_code INT, fetch_offset BIGINT, high_watermark BIGINT"
)
BROKERS = (1, 2, 10)
BOUNDS = ("log_start_offset", "end_offset", "leader_log_start_offset", "leader_end_offset")


def made_up(dice: random.Random, n: int) -> dict[str, Any]:
    ends = [dice.choice([None, *range(40, 60, 5)]) for _ in range(12)]
    leader = dice.choice([None, *BROKERS])
    replicas = [
        {"broker_id": broker_id, "is_before": is_before, "is_leader": broker_id == leader}
        | {"log_start_offset": dice.choice([None, 10, 20, 30])}
        | dict(zip(("least_end", "greatest_end"), grown(dice.choice(ends), dice), strict=True))
        for broker_id in BROKERS
        for is_before in (True, False)
        if dice.random() < 0.8
    ]
    if replicas and dice.random() < 0.1:
        dice.choice(replicas)["is_leader"] = True
    return {
        "n": n,
        "told": None if dice.random() < 0.05 else replicas,
        "broker_id": dice.choice(BROKERS),
        "leader_in_snapshot": dice.choice([None, *BROKERS]),
        "error_code": dice.choice([1, 1, 1, 0, 0, 6, 74, 999, None]),
        "fetch_offset": dice.choice([None, *range(0, 70, 3), *range(0, 70, 5)]),
        "high_watermark": dice.choice([None, 40, 50]),
    }


def grown(end: int | None, dice: random.Random) -> tuple[int | None, int | None]:
    return (None, None) if end is None else (end, end + dice.choice([0, 0, 5]))


def offsets_by_broker(row: dict[str, Any]) -> dict[int, ReplicaOffsets]:
    """The row as inputs of the rule."""
    by_broker = {}
    for broker_id in {each["broker_id"] for each in row["told"] or ()}:
        own = [each for each in row["told"] if each["broker_id"] == broker_id]
        before = [each for each in own if each["is_before"]]
        within = [each for each in own if not each["is_before"]]
        by_broker[broker_id] = ReplicaOffsets(
            most(own, "log_start_offset"),
            most(before, "greatest_end"),
            min((e["least_end"] for e in within if e["least_end"] is not None), default=None),
            most(own, "greatest_end"),
            any(each["is_leader"] for each in own),
        )
    return by_broker


def most(replicas: list[dict[str, Any]], name: str) -> int | None:
    return max((each[name] for each in replicas if each[name] is not None), default=None)


@pytest.mark.spark
def test_sql_says_what_the_rule_says(spark: SparkSession) -> None:
    dice = random.Random(392)
    rows = [made_up(dice, n) for n in range(20_000)]
    frame = spark.createDataFrame(rows, SCHEMA)
    counted = Counter[str | bool | None]()
    for got in frame.transform(with_bounds).transform(with_fault).collect():
        row = rows[got["n"]]
        offsets = offsets_by_broker(row)
        leader_id = rule.leader(offsets, row["leader_in_snapshot"])
        assert got["leader_id"] == leader_id
        answer = FetchAnswer(
            row["broker_id"], row["error_code"] or 0, row["fetch_offset"], row["high_watermark"]
        )
        assert got["fault"] == rule.fault(answer, offsets, leader_id), row
        has_offset = rule.leader_has_offset(row["fetch_offset"], offsets, leader_id)
        assert got["is_held_by_leader"] == has_offset
        own, leader = (
            offsets.get(row["broker_id"], ReplicaOffsets()),
            offsets.get(leader_id or 0, ReplicaOffsets()),
        )
        bounds = (own.log_start_offset, own.end_offset, leader.log_start_offset, leader.end_offset)
        assert bounds == tuple(got[name] for name in BOUNDS)
        counted[got["fault"]] += 1
    assert sum(counted.values()) == len(rows)
    assert len(counted) == 5 + 1 + 3
    assert min(counted.values()) > 100
