"""Snapshots of the real cluster, against what the cluster itself says by kafka-python's methods."""

import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.traffic import DAVE_QUOTA_BYTES_PER_S
from quotaflow.pipelines import config
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.snapshots import take
from quotaflow.schemas.tables.catalog import TABLES

from .tables_read import query

TOPICS = ("orders", "payments", "exports")
ANOTHER = "User:another"


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query(folder, sql))


def current(folder: Path, table: str, columns: str, where: str = "true") -> list[tuple[Any, ...]]:
    """Columns of the rows that stand."""
    identity = ", ".join(name for name in TABLES[table].key if name != "event_time")
    aged = f"row_number() OVER (PARTITION BY {identity} ORDER BY event_time DESC) AS age"
    newest = f"SELECT * FROM (SELECT *, {aged} FROM {table}) AS aged WHERE age = 1"
    return rows(
        folder, f"SELECT {columns} FROM ({newest}) AS newest WHERE NOT is_removed AND {where}"
    )


@pytest.fixture(scope="module")
def taken(filled: Path, login: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables as a second snapshot leaves them, by another login: the cluster went on since."""
    folder = tmp_path_factory.mktemp("taken") / "warehouse"
    shutil.copytree(filled, folder)
    principal = f"kafka.principal={ANOTHER}"
    conf = config.load(overrides=[*login, principal, f"warehouse.path={folder}"])
    take.take(conf, datetime.now(UTC), lambda _: None)
    return folder


@pytest.fixture(scope="module")
def described(cluster: LocalCluster) -> list[dict[str, Any]]:
    """Topics of the traffic, as the cluster describes them."""
    with cluster.admin() as client:
        topics: list[dict[str, Any]] = client.describe_topics(list(TOPICS))
    return topics


def test_brokers_and_the_active_controller(taken: Path, cluster: LocalCluster) -> None:
    with cluster.admin() as client:
        brokers = client.describe_cluster()["brokers"]
        quorum = client.describe_metadata_quorum()["topics"][0]["partitions"][0]
    sql = "SELECT broker_id, port, rack, is_controller, is_fenced FROM current_brokers"
    assert rows(taken, sql) == [
        (b["broker_id"], b["port"], b["rack"], b["broker_id"] == quorum["leader_id"], False)
        for b in sorted(brokers, key=lambda b: b["broker_id"])
    ]


def test_topics_and_where_their_replicas_are(taken: Path, described: list[dict[str, Any]]) -> None:
    of_traffic = f"WHERE topic IN {TOPICS}"
    sql = f"SELECT topic, topic_id, partition_count FROM current_topics {of_traffic}"
    assert rows(taken, sql) == sorted(
        (topic["name"], admin.printed(topic["topic_id"]), len(topic["partitions"]))
        for topic in described
    )
    sql = f"SELECT topic, partition, broker_id, is_preferred FROM current_replicas {of_traffic}"
    assert rows(taken, sql) == sorted(
        (topic["name"], partition["partition_index"], broker_id, position == 0)
        for topic in described
        for partition in topic["partitions"]
        for position, broker_id in enumerate(partition["replica_nodes"])
    )
    sql = "SELECT topic_id, partition, sum(CAST(is_leader AS INT)) AS n FROM current_replicas"
    assert {row[2] for row in rows(taken, f"{sql} GROUP BY topic_id, partition")} == {1}


def test_sizes_are_those_of_the_log_dirs(taken: Path, cluster: LocalCluster) -> None:
    with cluster.admin() as client:
        log_dirs = client.describe_log_dirs(list(TOPICS))
    names = "broker_id, topic, partition, size_bytes"
    assert current(taken, "replica_sizes", names, f"topic IN {TOPICS}") == sorted(
        (broker["broker"], topic["name"], partition["partition_index"], partition["partition_size"])
        for broker in log_dirs
        for log_dir in broker["log_dirs"]
        for topic in log_dir["topics"]
        for partition in topic["partitions"]
    )


def test_what_topics_keep_is_their_size_from_snapshot_to_snapshot(taken: Path) -> None:
    of_sizes = "WHERE table_name = 'replica_sizes'"
    times = [row[0] for row in rows(taken, f"SELECT taken_at FROM snapshot_times {of_sizes}")]
    changes = query(taken, f"SELECT * FROM replica_sizes WHERE topic IN {TOPICS}")
    expected = dict.fromkeys(TOPICS, 0.0)
    for since, until in pairwise(times):
        before = [row for row in changes if row["event_time"] <= since]
        sizes = {
            (row["topic"], row["partition"], row["broker_id"], row["log_dir"]): row["size_bytes"]
            for row in sorted(before, key=lambda row: row["event_time"])
        }
        for (topic, *_), size_bytes in sizes.items():
            expected[topic] += size_bytes * (until - since) / timedelta(hours=1)
    sql = (
        "SELECT topic, sum(byte_hours) AS byte_hours, max(unsized_replicas) AS unsized "
        f"FROM storage_by_hour WHERE topic IN {TOPICS} GROUP BY topic"
    )
    assert rows(taken, sql) == [
        (topic, pytest.approx(expected[topic]), 0) for topic in sorted(TOPICS)
    ]
    assert min(expected.values()) > 0


def test_configs_of_brokers_with_their_sources(taken: Path, cluster: LocalCluster) -> None:
    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    with cluster.admin() as client:
        configs = client.describe_configs([resource], config_filter="all")["broker"]["1"]
    names = "config_key, config_value, config_source, is_sensitive"
    of_broker = "entity_type = 'broker' AND entity_name = '1'"
    assert current(taken, "configs", names, of_broker) == sorted(
        (
            key,
            None if each["is_sensitive"] else each["value"],
            each["config_source"],
            each["is_sensitive"],
        )
        for key, each in configs.items()
    )
    secret = "SELECT count(*) AS n FROM configs WHERE is_sensitive AND config_value IS NOT NULL"
    assert rows(taken, secret) == [(0,)]


def test_the_cluster_was_asked_whether_it_takes_producer_ids_rate(taken: Path) -> None:
    of_probe = "setting = 'probe.producer_ids_rate'"
    assert rows(taken, f"SELECT setting_value FROM current_settings WHERE {of_probe}") == [
        ("refused: 42 Invalid configuration key producer_ids_rate",)
    ]


def test_a_quota_with_who_set_it_and_when(taken: Path) -> None:
    of_dave = "WHERE user = 'dave'"
    assert rows(taken, f"SELECT quota, set_by FROM current_client_quotas {of_dave}") == [
        (DAVE_QUOTA_BYTES_PER_S, "User:admin")
    ]
    (logged,) = query(
        taken,
        "SELECT max(event_time) AS t FROM requests WHERE api = 'ALTER_CLIENT_QUOTAS' "
        "AND body LIKE '%dave%'",
    )
    # Once, though there were two snapshots.
    assert rows(taken, f"SELECT set_at FROM client_quotas {of_dave}") == [(logged["t"],)]


def test_producers_are_those_that_leaders_know(
    taken: Path, cluster: LocalCluster, described: list[dict[str, Any]]
) -> None:
    partitions = [
        TopicPartition(topic["name"], partition["partition_index"])
        for topic in described
        for partition in topic["partitions"]
    ]
    with cluster.admin() as client:
        leaders = client.describe_producers(partitions)
        transactions = client.list_transactions()
    names = "topic, partition, producer_id, producer_epoch"
    assert current(taken, "active_producers", names, f"topic IN {TOPICS}") == sorted(
        (*partition, state.producer_id, state.producer_epoch)
        for partition, states in leaders.items()
        for state in states.active_producers
    )
    names = "transactional_id, producer_id, broker_id"
    assert current(taken, "transactional_ids", names) == sorted(
        (each.transactional_id, each.producer_id, broker_id)
        for broker_id, producers in transactions.items()
        for each in producers
    )


def test_a_second_snapshot_repeats_nothing(taken: Path) -> None:
    repeated = """
        SELECT topic_id, partition, broker_id
        FROM (
            SELECT *, lag(is_in_sync) OVER w AS was_in_sync, lag(is_leader) OVER w AS was_leader,
                lag(is_offline) OVER w AS was_offline, lag(is_removed) OVER w AS was_removed
            FROM replicas
            WINDOW w AS (PARTITION BY topic_id, partition, broker_id ORDER BY event_time)
        ) AS seen
        WHERE is_in_sync = was_in_sync AND is_leader = was_leader AND is_offline = was_offline
            AND is_removed = was_removed
    """
    assert rows(taken, repeated) == []


def test_who_else_alters_configs_is_all_but_this_login(filled: Path, taken: Path) -> None:
    sql = (
        "SELECT kind, entity_types, principal FROM other_config_managers "
        "WHERE principal = 'User:admin' "
    )
    assert rows(filled, sql) == []
    tool = "AND client_id = 'reassign-partitions-tool'"
    (row,) = rows(taken, sql + tool)
    assert row == ("kafka-reassign-partitions", "broker,replicas,topic", "User:admin")
    demo = "AND client_id = 'quotaflow-demo'"
    assert ("other", "client-metrics,topic,user", "User:admin") in rows(taken, sql + demo)
    # Topics of Kafka's own, such as __consumer_offsets, brokers make at the controller.
    sql = "SELECT DISTINCT principal, is_own FROM config_writers WHERE api <> 'CREATE_TOPICS'"
    assert rows(filled, sql) == [("User:admin", True)]
    assert rows(taken, sql) == [("User:admin", False)]
