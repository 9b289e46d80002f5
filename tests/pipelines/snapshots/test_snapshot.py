"""What snapshots write: nothing twice, nothing for a refusal, and the same rows in a catalog."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.declared import (
    CLIENT_QUOTAS,
    CLIENT_SUBSCRIPTIONS,
    CONFIGS,
    GROUP_OFFSETS,
    GROUPS,
    PARTITION_OFFSETS,
    TOPICS,
    TRANSACTIONAL_IDS,
)

from ..kafka.fake_cluster import (
    CLUSTER_AUTHORIZATION_FAILED,
    LOADING,
    TOPIC_AUTHORIZATION_FAILED,
    MadeCluster,
)
from ..kafka.fake_groups import MadeGroup
from .snapshot_scenes import EVERY_S, NEEDED, Resources, Scene, altered, answer, at, of_resources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY = "SELECT event_time, entity_name, config_key, config_value FROM configs"


def test_only_what_changed_is_written(scene: Scene) -> None:
    def written(minute: int, resources: Resources) -> int:
        return scene.take(minute, of_resources(resources), [CONFIGS])

    assert written(1, EVERY_S) == 2
    assert written(2, EVERY_S) == 0
    assert written(3, {"all": {"metrics": "*", "interval.ms": "500"}}) == 1
    assert written(4, {"all": {"metrics": "*"}, "b": {"metrics": "b."}}) == 2
    assert written(5, {}) == 2
    assert written(6, EVERY_S) == 2
    history = [
        (at(1), "all", "interval.ms", "1000"),
        (at(1), "all", "metrics", "*"),
        (at(3), "all", "interval.ms", "500"),
        (at(4), "all", "interval.ms", None),
        (at(4), "b", "metrics", "b."),
        (at(5), "all", "metrics", None),
        (at(5), "b", "metrics", None),
        (at(6), "all", "interval.ms", "1000"),
        (at(6), "all", "metrics", "*"),
    ]
    assert scene.rows(HISTORY) == history
    assert written(6, EVERY_S) == 0


def test_a_change_is_written_after_the_clock_went_back(scene: Scene) -> None:
    scene.take(6, of_resources(EVERY_S), [CONFIGS])
    assert scene.take(5, of_resources({"all": {"metrics": "other"}}), [CONFIGS]) == 2
    assert (at(5), "all", "metrics", "other") in scene.rows(HISTORY)


CHOSEN = (TOPICS, CLIENT_QUOTAS, TRANSACTIONAL_IDS)
QUOTA = ({"user": "alice"}, {"request_percentage": 5.0})


def test_a_refusal_costs_what_it_concerns_and_is_counted(scene: Scene) -> None:
    scene.make(*(table.name for table in CHOSEN))
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
    assert scene.take(0, whole, CHOSEN) == 5
    assert scene.take(1, refusing, CHOSEN, messages.append) == 2
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
    assert scene.rows("SELECT topic FROM topics WHERE is_removed") == [("a",)]
    removed = "SELECT transactional_id FROM transactional_ids WHERE is_removed"
    assert scene.rows(removed) == [("t1",)]
    progress = "SELECT target, reason, row_count FROM pipeline_progress WHERE outcome = 'left_out'"
    assert scene.rows(progress) == [
        ("client_quotas", "CLUSTER_AUTHORIZATION_FAILED", 1),
        ("topics", "TOPIC_AUTHORIZATION_FAILED", 1),
        ("transactional_ids", "COORDINATOR_LOAD_IN_PROGRESS", 1),
    ]
    assert scene.take(2, MadeCluster(topics={"b": 1}), CHOSEN) == 2
    # A refusal is no answer; that there is none is an answer.
    came = "outcome = 'in' AND target = 'client_quotas'"
    rows = scene.rows(f"SELECT event_time, row_count FROM pipeline_progress WHERE {came}")
    assert rows == [(at(0), 1), (at(2), 0)]
    with pytest.raises(KafkaError, match=r"answered nothing \(CLUSTER_AUTHORIZATION_FAILED\)"):
        scene.take(3, refusing, [CLIENT_QUOTAS])


def contents(scene: Scene) -> list[list[tuple[Any, ...]]]:
    """What tables have after two snapshots of a cluster that changes, the second taken twice."""
    scene.make("client_quotas", "client_subscriptions", *NEEDED)
    scene.put("requests", [altered(1.5, 4.5, user="alice")])
    scene.put("telemetry_subscriptions", [answer(1)])
    entity: dict[str, str | None] = {"user": "alice", "client-id": None}
    resources = of_resources(EVERY_S).configs
    first = MadeCluster(configs=resources, quotas=[(entity, {"request_percentage": 5.0})])
    second = MadeCluster(configs=resources, quotas=[(entity, {"request_percentage": 4.5})])
    scene.take(1, first, [CLIENT_QUOTAS, CLIENT_SUBSCRIPTIONS])
    for _ in range(2):
        scene.take(2, second, [CLIENT_QUOTAS])
    progress = "SELECT event_time, target, outcome, row_count FROM pipeline_progress"
    return [
        *(
            scene.rows(f"SELECT {', '.join(table.column_names)} FROM {table.name}")
            for table in (CLIENT_QUOTAS, CLIENT_SUBSCRIPTIONS)
        ),
        scene.rows(progress),
    ]


@pytest.mark.spark
@pytest.mark.faults
def test_a_catalog_gets_the_same_rows(
    spark: "SparkSession", catalog: Warehouse, scene: Scene
) -> None:
    in_catalog = contents(Scene(catalog.conf, lambda: spark))
    assert in_catalog == contents(scene)
    assert [len(rows) for rows in in_catalog] == [2, 1, 7]


READ = (TOPICS, GROUPS, GROUP_OFFSETS, PARTITION_OFFSETS)
LATER = timedelta(seconds=7)


@pytest.mark.parametrize("chosen", [READ, READ[-1:]])
def test_offsets_have_the_time_at_which_reading_them_began(
    scene: Scene, chosen: tuple[Table, ...]
) -> None:
    scene.make(*(table.name for table in READ))
    group = MadeGroup(offsets={("a", 0): 4}, protocol_type="")
    made = MadeCluster(topics={"a": 1}, groups={"g": group})
    for minute in (1, 2):
        # It goes on while tables are read.
        passed = iter(n * LATER for n in (1, 2, 3))
        scene.take(minute, made, chosen, elapsed=passed.__next__)
    times = {table.name: at(1) for table in chosen if table in (TOPICS, GROUPS)}
    times |= {table.name: at(1) + LATER for table in chosen if table not in (TOPICS, GROUPS)}
    for name, time in times.items():
        assert scene.rows(f"SELECT DISTINCT event_time FROM {name}") == [(time,)]
        counted = f"outcome = 'in' AND target = '{name}'"
        rows = scene.rows(f"SELECT event_time FROM pipeline_progress WHERE {counted}")
        assert rows == [(time,), (time + timedelta(minutes=1),)]
