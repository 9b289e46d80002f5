"""Uses of producer ids, and their first snapshot at a leader, from facts to rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quotaflow.pipelines.config import ProducerIdsSection
from quotaflow.pipelines.incremental.result import RuleInputs
from quotaflow.pipelines.results.producer_ids import producer_id_activations, producer_id_uses
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES, PRODUCER_ID_USES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import ACTIVE_PRODUCERS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ACTIVE = ACTIVE_PRODUCERS
REQUEST = {
    "cluster_id": "c",
    "broker_id": 1,
    "principal": "User:alice",
    "client_id": "orders-7",
    "client_address": "10.0.0.1",
    "error_code": 0,
}


def request(
    second: float, api: str, producer_id: int | None = None, **others: Any
) -> dict[str, Any]:
    time = {"event_time": NOON + timedelta(seconds=second), "record_time": NOON}
    return REQUEST | time | {"api": api, "producer_id": producer_id} | others


def frame(spark: SparkSession, table: Table, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=table.arrow))


FACTS = [
    request(1, "INIT_PRODUCER_ID", 5, transactional_id="t", producer_epoch=0),
    request(2, "INIT_PRODUCER_ID", 5, transactional_id="t", producer_epoch=1),
    request(3, "END_TXN", 5, transactional_id="t", producer_epoch=3),
    request(59, "PRODUCE", error_code=None, broker_id=2),
    request(60, "PRODUCE", error_code=None),
    request(61, "END_TXN", 5, transactional_id="t", producer_epoch=3),
    request(4, "PRODUCE", 6, error_code=None, client_id="proxied"),
    request(4, "PRODUCE", error_code=None, client_id="given none"),
    request(4, "INIT_PRODUCER_ID", 9, error_code=14),
    request(4, "INIT_PRODUCER_ID", -1, client_id="refused"),
    request(4, "METADATA"),
]


@pytest.mark.spark
def test_uses_are_counted_by_minute_client_and_id(spark: SparkSession) -> None:
    facts = producer_id_uses.result().relevant_facts(frame(spark, REQUESTS, FACTS))
    used = producer_id_uses.uses(RuleInputs(facts))
    assert used.columns == PRODUCER_ID_USES.column_names
    columns = ("requests", "allocations", "produce_requests", "producer_epoch")
    got = {
        (row["event_time"].astimezone(UTC).minute, row["client_id"], row["producer_id"]): tuple(
            row[name] for name in columns
        )
        for row in used.collect()
    }
    assert got == {
        (0, "orders-7", 5): (3, 2, 0, 3),
        (0, "orders-7", None): (1, 0, 1, None),
        (1, "orders-7", 5): (1, 0, 0, 3),
        (0, "proxied", 6): (1, 0, 1, None),
    }


@pytest.mark.spark
def test_names_of_one_program_have_one_pattern(spark: SparkSession) -> None:
    names = {
        "producer-12": "producer-*",
        "orders-0-3f2c9a1be4d7-main": "orders-*-*-main",
        "shop": "shop",
        "": "",
        None: None,
        "7" * 5_000: "*",
        "x" * 5_000: "x" * 200,
    }
    table = pa.table({"client_id": pa.array(names, pa.string())})
    pattern = producer_id_uses.client_pattern(F.col("client_id"))
    rows = spark.createDataFrame(table).select("client_id", pattern.alias("pattern")).collect()
    assert {row["client_id"]: row["pattern"] for row in rows} == names


def active(second: float, producer_id: int, broker_id: int = 1, **others: Any) -> dict[str, Any]:
    row = {"cluster_id": "c", "event_time": NOON + timedelta(seconds=second), "topic": "t"}
    row |= {"broker_id": broker_id, "partition": 0, "producer_id": producer_id}
    return row | {"is_removed": False} | others


@pytest.mark.spark
def test_an_activation_is_the_first_snapshot_that_holds_an_id(spark: SparkSession) -> None:
    snapshots = [
        active(0.5, 1),
        active(100, 1, partition=1),
        *(active(100, n) for n in (2, 3, 4, 99)),
        active(100, 2, broker_id=2),
        active(200, 2, is_removed=True),
        active(200, 5),
        active(300, 2),
    ]
    owners = [
        {"cluster_id": "c", "producer_id": n, "principal": principal, "allocations": given}
        | {"last_seen": NOON + timedelta(seconds=n)}
        for n, principal, given in [
            *((n, "User:alice", 1) for n in range(1, 6)),
            (3, "User:liar", 0),
        ]
    ]
    inputs = RuleInputs(
        facts=frame(spark, ACTIVE, snapshots),
        lookups={
            ACTIVE.name: frame(spark, ACTIVE, snapshots),
            PRODUCER_ID_USES.name: frame(spark, PRODUCER_ID_USES, owners),
        },
    )
    conf = ProducerIdsSection(quotas={"alice": 0.02})
    rows = producer_id_activations.activations(inputs, conf=conf)
    assert rows.columns == PRODUCER_ID_RATES.column_names
    got = sorted(
        (
            round(row["event_time"].timestamp() - NOON.timestamp()),
            row["broker_id"],
            row["principal"] or "",
            row["new_ids"],
            row["rate_per_s"] and round(row["rate_per_s"], 9),
            row["is_violating"],
        )
        for row in rows.collect()
    )
    assert got == [
        (0, 1, "User:alice", 1, None, False),
        (100, 1, "", 1, round(1 / 99.5, 9), False),
        (100, 1, "User:alice", 3, round(3 / 99.5, 9), True),
        (100, 2, "User:alice", 1, round(1 / 99.5, 9), False),
        (200, 1, "User:alice", 1, 0.01, False),
    ]
