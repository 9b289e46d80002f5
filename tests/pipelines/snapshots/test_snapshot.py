"""Rows of changes: nothing twice, removed rows, and none for unanswered parts."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka.cluster_state import ClusterState
from quotaflow.pipelines.snapshots import client_quotas, client_subscriptions, take
from quotaflow.pipelines.snapshots.changes import changes
from quotaflow.pipelines.snapshots.observations import UnansweredPart
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.pipelines.snapshots.snapshot import Snapshot
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import (
    CLIENT_QUOTAS,
    CLIENT_SUBSCRIPTIONS,
    CONFIGS,
    TRANSACTIONAL_IDS,
)
from quotaflow.schemas.tables.telemetry import TELEMETRY_SUBSCRIPTIONS
from quotaflow.schemas.tables.topology import BROKERS, REPLICA_SIZES, TOPICS

from ..kafka.fake_cluster import (
    CLIENT_METRICS,
    CLUSTER_AUTHORIZATION_FAILED,
    LOADING,
    OF_RESOURCE,
    TOPIC_AUTHORIZATION_FAILED,
    MadeCluster,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
_LONG = pytest.mark.faults
Resources = dict[str, dict[str, str]]
EVERY_S: Resources = {"all": {"metrics": "*", "interval.ms": "1000"}}
NEEDED = ("telemetry_subscriptions", "requests", "pipeline_progress")


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    made = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    names = {*NEEDED, "configs", "client_subscriptions"}
    made.ensure(lambda: spark, [TABLES[name] for name in names])
    return made


def snapshot(spark: SparkSession, warehouse: Warehouse, minute: int) -> Snapshot:
    batch = Batch(warehouse, take.JOB, take.JOB, minute)
    return Snapshot(spark, batch, "c1", at(minute))


def configured(resources: Resources) -> MadeCluster:
    return MadeCluster(
        configs={
            (CLIENT_METRICS, name): [(key, value, OF_RESOURCE) for key, value in values.items()]
            for name, values in resources.items()
        }
    )


def taken_of(
    taken: Snapshot,
    made: MadeCluster,
    chosen: Sequence[Table],
    say: Callable[[str], None] = lambda _: None,
) -> int:
    observer = ClusterObserver(ClusterState(made), partial(take.current_topics, taken))
    return take.write(taken, observer, chosen, say)


def written(spark: SparkSession, warehouse: Warehouse, minute: int, resources: Resources) -> int:
    taken = snapshot(spark, warehouse, minute)
    return taken_of(taken, configured(resources), [CONFIGS])


def history(spark: SparkSession, warehouse: Warehouse) -> list[tuple[Any, ...]]:
    rows = warehouse.read(spark, CONFIGS.name).collect()
    return sorted(
        (row.event_time.astimezone(UTC).minute, row.entity_name, row.config_key, row.config_value)
        for row in rows
    )


@pytest.mark.spark
def test_only_what_changed_is_written(spark: SparkSession, warehouse: Warehouse) -> None:
    warehouse.ensure(lambda: spark, [TOPICS])
    assert written(spark, warehouse, 1, EVERY_S) == 2
    assert written(spark, warehouse, 2, EVERY_S) == 0
    assert written(spark, warehouse, 3, {"all": {"metrics": "*", "interval.ms": "500"}}) == 1
    assert written(spark, warehouse, 4, {"all": {"metrics": "*"}, "b": {"metrics": "b."}}) == 2
    assert written(spark, warehouse, 5, {}) == 2
    assert written(spark, warehouse, 6, EVERY_S) == 2
    assert history(spark, warehouse) == [
        (1, "all", "interval.ms", "1000"),
        (1, "all", "metrics", "*"),
        (3, "all", "interval.ms", "500"),
        (4, "all", "interval.ms", None),
        (4, "b", "metrics", "b."),
        (5, "all", "metrics", None),
        (5, "b", "metrics", None),
        (6, "all", "interval.ms", "1000"),
        (6, "all", "metrics", "*"),
    ]
    # The same snapshot written again changes nothing, as Delta has seen its batch.
    written(spark, warehouse, 6, {"all": {"metrics": "other"}})
    assert len(history(spark, warehouse)) == 9


def frame(spark: SparkSession, table: Table, rows: list[dict[str, Any]]) -> DataFrame:
    common = {"cluster_id": "c1", "is_removed": False, table.time: NOON}
    return spark.createDataFrame(
        pa.Table.from_pylist([common | row for row in rows], schema=table.arrow)
    )


SIZES = [
    {"topic": topic, "partition": 0, "broker_id": broker_id, "log_dir": log_dir, "size_bytes": 1}
    for topic in ("a", "b")
    for broker_id in (1, 2)
    for log_dir in ("/x", "/y")
]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("gaps", "removed"),
    [
        pytest.param([], 8, id="all is answered"),
        pytest.param([UnansweredPart("X")], 0, id="nothing is answered"),
        pytest.param([UnansweredPart("X", columns=("offset_lag",))], 8, id="but for a column"),
        pytest.param([UnansweredPart("X", {"broker_id": 1})], 4, id="one broker is silent"),
        pytest.param(
            [UnansweredPart("X", {"broker_id": 1, "log_dir": "/x"})], 6, id="one of its log dirs"
        ),
        pytest.param(
            [
                UnansweredPart("X", {"broker_id": 1}),
                UnansweredPart("Y", {"broker_id": 1}),
                UnansweredPart("X", {"topic": "a"}),
            ],
            2,
            id="each of several, named twice or of the same rows",
        ),
        pytest.param([UnansweredPart("X", {"broker_id": 9})], 8, id="one that has no rows"),
    ],
)
def test_what_is_not_told_stays(
    spark: SparkSession, gaps: list[UnansweredPart], removed: int
) -> None:
    current = frame(spark, REPLICA_SIZES, SIZES)
    none = current.limit(0)
    rows = changes(none, current, REPLICA_SIZES, at(1), gaps).collect()
    assert len(rows) == removed
    assert all(row.is_removed and row.size_bytes is None for row in rows)


@pytest.mark.spark
def test_a_column_that_is_not_told_stays_as_it_stands(spark: SparkSession) -> None:
    broker = {"broker_id": 1, "port": 1, "is_controller": True}
    current = frame(spark, BROKERS, [broker, broker | {"broker_id": 2}])
    seen = frame(spark, BROKERS, [broker, broker | {"broker_id": 2, "port": 9}, {"broker_id": 3}])
    rows = changes(seen.drop("is_controller"), current, BROKERS, at(1)).collect()
    assert sorted((row.broker_id, row.port, row.is_controller) for row in rows) == [
        (2, 9, True),
        (3, None, None),
    ]


CHOSEN = (TOPICS, CLIENT_QUOTAS, TRANSACTIONAL_IDS)
QUOTA = ({"user": "alice"}, {"request_percentage": 5.0})


@pytest.mark.spark
def test_a_refusal_costs_what_it_concerns_and_is_counted(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    warehouse.ensure(lambda: spark, CHOSEN)
    whole = MadeCluster(
        topics={"a": 1, "b": 1}, quotas=[QUOTA], transactions={1: [("t1", 1)], 2: [("t2", 2)]}
    )
    refusing = MadeCluster(
        topics={"b": 1},
        refused={
            ("DescribeTopicPartitions", "b"): TOPIC_AUTHORIZATION_FAILED,
            ("DescribeClientQuotas", None): CLUSTER_AUTHORIZATION_FAILED,
            ("ListTransactions", 2): LOADING,
        },
    )
    messages: list[str] = []

    def take_at(minute: int, made: MadeCluster) -> int:
        return taken_of(snapshot(spark, warehouse, minute), made, CHOSEN, messages.append)

    assert take_at(0, whole) == 5
    messages.clear()
    assert take_at(1, refusing) == 2
    left_out = [line.split(": this login needs ") for line in messages if "left out" in line]
    assert [len(parts) - 1 for parts in left_out] == [1, 1, 0]
    assert [parts[0] for parts in left_out] == [
        f"snapshot: 1 left out ({reason}) of {table}"
        for table, reason in (
            ("topics", "TOPIC_AUTHORIZATION_FAILED"),
            ("client_quotas", "CLUSTER_AUTHORIZATION_FAILED"),
            ("transactional_ids", "COORDINATOR_LOAD_IN_PROGRESS"),
        )
    ]
    removed = [
        {row.topic for row in warehouse.read(spark, "topics").where("is_removed").collect()},
        {
            row.transactional_id
            for row in warehouse.read(spark, "transactional_ids").where("is_removed").collect()
        },
    ]
    assert removed == [{"a"}, {"t1"}]
    progress = warehouse.read(spark, "pipeline_progress").where("outcome = 'left_out'").collect()
    assert sorted((row.target, row.reason, row.row_count) for row in progress) == [
        ("client_quotas", "CLUSTER_AUTHORIZATION_FAILED", 1),
        ("topics", "TOPIC_AUTHORIZATION_FAILED", 1),
        ("transactional_ids", "COORDINATOR_LOAD_IN_PROGRESS", 1),
    ]
    assert take_at(2, MadeCluster(topics={"b": 1})) == 2
    came = warehouse.read(spark, "pipeline_progress").where(
        "outcome = 'in' AND target = 'client_quotas'"
    )
    # A refusal is no answer; that there is none is an answer.
    assert sorted((row.batch_id, row.row_count) for row in came.collect()) == [(0, 1), (2, 0)]
    with pytest.raises(KafkaError, match=r"answered nothing \(CLUSTER_AUTHORIZATION_FAILED\)"):
        taken_of(snapshot(spark, warehouse, 3), refusing, [CLIENT_QUOTAS])


def altered(minute: float, value: float | None, **others: Any) -> dict[str, Any]:
    """A request that set or removed a quota of a user's default client id."""
    user, key = others.pop("user", "u"), others.pop("key", "request_percentage")
    parts = [{"entityType": "user", "entityName": user}, {"entityType": "client-id"}]
    op = {"key": key, "value": value or 0.0, "remove": value is None}
    entries = [{"entity": parts, "ops": [op]}]
    request = {"entries": entries, "validateOnly": others.pop("dry", False)}
    result = {"errorCode": others.pop("code", 0), "entity": parts[::-1]}
    body = json.dumps({"request": request, "response": {"entries": [result]}})
    row = {"cluster_id": "c1", "event_time": at(minute), "api": "ALTER_CLIENT_QUOTAS"}
    return row | {"principal": "User:admin", "body": body} | others


SetterCase = tuple[float, float | None, dict[str, Any]]
SET: dict[str, tuple[float | None, list[SetterCase], int | None]] = {
    "the last one set it": (5.5, [(1, 4, {}), (2, 5.5, {})], 2),
    "set otherwise since": (5.5, [(2, 5.5, {}), (3, 4, {})], None),
    "removed": (None, [(1, 5.5, {}), (2, None, {})], 2),
    "refused": (5.5, [(2, 5.5, {"code": 42})], None),
    "only checked": (5.5, [(2, 5.5, {"dry": True})], None),
    "before the last look": (5.5, [(-1, 5.5, {})], None),
    "another key": (5.5, [(2, 5.5, {"key": "producer_byte_rate"})], None),
    "another cluster": (5.5, [(2, 5.5, {"cluster_id": "c2"})], None),
    "a line that was cut": (5.5, [(2, 5.5, {"body": "{cut"})], None),
    "nobody's line": (5.5, [], None),
}
"""By user: the quota a snapshot saw, requests as minute and value, and the minute it was set."""


@pytest.mark.spark
def test_who_set_a_quota_and_when(spark: SparkSession) -> None:
    entity = {"is_default_user": False, "is_default_client_id": True, "is_default_ip": False}
    seen = [
        {"user": user, "config_key": "request_percentage", "quota": quota} | entity
        for user, (quota, _, _) in SET.items()
    ]
    lines = [
        altered(minute, value, user=user, **others)
        for user, (_, requests, _) in SET.items()
        for minute, value, others in requests
    ]
    requests = spark.createDataFrame(pa.Table.from_pylist(lines, schema=REQUESTS.arrow))
    changed = frame(spark, CLIENT_QUOTAS, seen)
    rows = client_quotas.with_setter(changed, requests, NOON).collect()
    expected = {
        user: (quota, None, None) if minute is None else (quota, at(minute), "User:admin")
        for user, (quota, _, minute) in SET.items()
    }
    setters = {r.user: (r.quota, r.set_at and r.set_at.astimezone(UTC), r.set_by) for r in rows}
    assert setters == expected


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
            marks=_LONG,
        ),
        pytest.param(
            [ANSWER | {"requested_metrics": ["b", "a"]}],
            {"one": {"metrics": "a,b", "interval.ms": "1000", "match": "client_id=ord.*"}},
            [("i1", ["one"], ["a", "b"], 1_000, "as_predicted")],
            id="in whatever order",
            marks=_LONG,
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
            marks=_LONG,
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
            marks=_LONG,
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
    schema = TELEMETRY_SUBSCRIPTIONS.arrow
    frame = spark.createDataFrame(pa.Table.from_pylist(answers, schema=schema))
    warehouse.write(frame.write.format("delta").mode("append"), "telemetry_subscriptions")
    warehouse.ensure(lambda: spark, [TOPICS])
    assert written(spark, warehouse, 1, resources) == sum(map(len, resources.values()))
    for minute in (6, 7):
        observer = ClusterObserver(ClusterState(configured(resources)), set)
        seen = observer.observed(CLIENT_SUBSCRIPTIONS)
        client_subscriptions.replace(snapshot(spark, warehouse, minute), seen)
    rows = warehouse.read(spark, "client_subscriptions").collect()
    names = ("subscriptions", "predicted_metrics", "predicted_interval_ms", "state")
    assert [(row.client_instance_id, *(row[n] for n in names)) for row in rows] == expected
