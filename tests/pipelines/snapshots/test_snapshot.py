"""Rows of what changed: nothing twice, tombstones for what went, other scopes left alone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.sinks import Batch
from quotaflow.pipelines.snapshots import client_subscriptions, configs
from quotaflow.pipelines.snapshots.snapshot import Snapshot
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas import tables

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SCOPE = {"entity_type": configs.CLIENT_METRICS}
Resources = dict[str, dict[str, str]]
EVERY_S: Resources = {"all": {"metrics": "*", "interval.ms": "1000"}}


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    made = Warehouse(config.Warehouse(path=str(tmp_path)))
    made.ensure(
        spark, [tables.CONFIGS, tables.CLIENT_SUBSCRIPTIONS, tables.TELEMETRY_SUBSCRIPTIONS]
    )
    return made


def snapshot(spark: SparkSession, warehouse: Warehouse, minute: int) -> Snapshot:
    now = NOON + timedelta(minutes=minute)
    return Snapshot(spark, Batch(warehouse, "snapshot", "snapshot", minute), "c1", now)


def written(spark: SparkSession, warehouse: Warehouse, minute: int, resources: Resources) -> int:
    taken = snapshot(spark, warehouse, minute)
    return taken.append_changes(tables.CONFIGS, configs.of_client_metrics(resources), SCOPE).rows


def history(spark: SparkSession, warehouse: Warehouse) -> list[tuple[Any, ...]]:
    rows = warehouse.read(spark, tables.CONFIGS.name).collect()
    return sorted(
        (row.event_time.astimezone(UTC).minute, row.entity_name, row.config_key, row.config_value)
        for row in rows
    )


@pytest.mark.spark
def test_only_what_changed_is_written(spark: SparkSession, warehouse: Warehouse) -> None:
    foreign = {"entity_type": "topic", "entity_name": "t", "config_key": "k", "config_value": "v"}
    taken = snapshot(spark, warehouse, 0)
    taken.append_changes(tables.CONFIGS, [foreign], {"entity_type": "topic"})
    assert written(spark, warehouse, 1, EVERY_S) == 2
    assert written(spark, warehouse, 2, EVERY_S) == 0
    assert written(spark, warehouse, 3, {"all": {"metrics": "*", "interval.ms": "500"}}) == 1
    assert written(spark, warehouse, 4, {"all": {"metrics": "*"}, "b": {"metrics": "b."}}) == 2
    assert written(spark, warehouse, 5, {}) == 2
    assert written(spark, warehouse, 6, {}) == 0
    assert written(spark, warehouse, 7, EVERY_S) == 2
    assert history(spark, warehouse) == [
        (0, "t", "k", "v"),
        (1, "all", "interval.ms", "1000"),
        (1, "all", "metrics", "*"),
        (3, "all", "interval.ms", "500"),
        (4, "all", "interval.ms", None),
        (4, "b", "metrics", "b."),
        (5, "all", "metrics", None),
        (5, "b", "metrics", None),
        (7, "all", "interval.ms", "1000"),
        (7, "all", "metrics", "*"),
    ]
    # The same snapshot written again changes nothing, as Delta has seen its batch.
    written(spark, warehouse, 7, {"all": {"metrics": "other"}})
    assert len(history(spark, warehouse)) == 10


ANSWER = {
    "cluster_id": "c1",
    "client_instance_id": "i1",
    "client_id": "orders",
    "client_software_name": "apache-kafka-java",
    "error_code": 0,
    "requested_metrics": ["*"],
    "push_interval_ms": 1_000,
    "event_time": NOON + timedelta(minutes=5),
}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("answers", "resources", "expected"),
    [
        pytest.param(
            [ANSWER, ANSWER | {"event_time": NOON, "push_interval_ms": 9}],
            EVERY_S,
            [("i1", ["all"], ["*"], 1_000, "as_predicted")],
            id="its last answer is what the resources give it",
        ),
        pytest.param(
            [ANSWER | {"requested_metrics": ["b", "a"]}],
            {"one": {"metrics": "a,b", "interval.ms": "1000", "match": "client_id=ord.*"}},
            [("i1", ["one"], ["a", "b"], 1_000, "as_predicted")],
            id="in whatever order",
        ),
        pytest.param(
            [ANSWER | {"event_time": NOON}],
            {"all": {"metrics": "a.", "interval.ms": "500"}},
            [("i1", ["all"], ["a."], 500, "pending")],
            id="answered before they changed",
        ),
        pytest.param(
            [ANSWER],
            {"all": {"metrics": "a.", "interval.ms": "500"}},
            [("i1", ["all"], ["a."], 500, "differs")],
            id="answered since, and otherwise",
        ),
        pytest.param(
            [ANSWER | {"requested_metrics": [], "push_interval_ms": 300_000}],
            {"one": {"metrics": "a.", "match": "client_id=ord"}},
            [("i1", [], [], 300_000, "as_predicted")],
            id="matched by nothing",
        ),
        pytest.param(
            [
                ANSWER | {"error_code": 89},
                ANSWER | {"cluster_id": "c2"},
                ANSWER | {"event_time": NOON - timedelta(days=2)},
            ],
            EVERY_S,
            [],
            id="refused, of another cluster, or long ago",
        ),
    ],
)
def test_what_resources_give_a_client_beside_what_it_got(
    spark: SparkSession,
    warehouse: Warehouse,
    answers: list[dict[str, Any]],
    resources: Resources,
    expected: list[tuple[Any, ...]],
) -> None:
    schema = tables.TELEMETRY_SUBSCRIPTIONS.arrow
    frame = spark.createDataFrame(pa.Table.from_pylist(answers, schema=schema))
    warehouse.write(frame.write.format("delta").mode("append"), "telemetry_subscriptions")
    assert written(spark, warehouse, 1, resources) == sum(map(len, resources.values()))
    for minute in (6, 7):
        client_subscriptions.replace(snapshot(spark, warehouse, minute), resources)
    rows = warehouse.read(spark, "client_subscriptions").collect()
    names = ("subscriptions", "predicted_metrics", "predicted_interval_ms", "state")
    assert [(row.client_instance_id, *(row[n] for n in names)) for row in rows] == expected
