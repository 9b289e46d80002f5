"""Answers of a cluster as rows of tables, and unanswered parts."""

from collections import Counter
from typing import Any

import pytest

from quotaflow.pipelines.kafka.cluster_state import ClusterState
from quotaflow.pipelines.snapshots import configs, sections
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_QUOTAS, CONFIGS
from quotaflow.udfs.rules.pseudonym import Pseudonyms

from ...cases import cases
from ...rows import Row
from ...schemas.views.view_tables import picked
from ..kafka.fake_cluster import (
    BROKER,
    BY_DEFAULT,
    CLIENT_METRICS,
    CLUSTER_AUTHORIZATION_FAILED,
    LOADING,
    NOT_LEADER,
    OF_RESOURCE,
    ON_TOPIC,
    STORAGE_ERROR,
    TOPIC,
    TOPIC_AUTHORIZATION_FAILED,
    MadeCluster,
)


def seen(
    made: MadeCluster, table: str, *current_topics: str
) -> tuple[list[Row], list[tuple[Any, ...]]]:
    """Rows of a table, and its unanswered parts as reason, identity and columns."""
    observer = ClusterObserver(ClusterState(made), lambda: set(current_topics))
    observed = observer.observed(TABLES[table])
    gaps = [(gap.reason, dict(gap.identity), *gap.columns) for gap in observed.unanswered]
    return observed.rows.to_pylist(), gaps


def test_brokers_are_told_with_their_controller() -> None:
    rows, gaps = seen(MadeCluster(fenced={3}), "brokers")
    assert gaps == []
    assert picked(rows, "broker_id", "port", "is_controller", "is_fenced") == [
        (1, 9_091, False, False),
        (2, 9_092, True, False),
        (3, 9_093, False, True),
    ]


def test_who_is_controller_may_be_refused_alone() -> None:
    made = MadeCluster(refused={("DescribeQuorum", None): CLUSTER_AUTHORIZATION_FAILED})
    rows, gaps = seen(made, "brokers")
    assert gaps == [("CLUSTER_AUTHORIZATION_FAILED", {}, "is_controller")]
    assert [sorted(row) for row in rows] == [["broker_id", "host", "is_fenced", "port", "rack"]] * 3


@pytest.mark.parametrize("page", [1, 2, 100])
def test_topics_and_replicas_whatever_the_pages(page: int) -> None:
    made = MadeCluster(topics={"_a": 1, "b": 3, "lost": 1}, page=page, fenced={2})
    topics, gaps = seen(made, "topics")
    assert gaps == []
    assert picked(topics, "topic", "partition_count", "is_internal") == [
        ("_a", 1, True),
        ("b", 3, False),
        ("lost", 1, False),
    ]
    replicas, _ = seen(made, "replicas")
    of_b = [row for row in replicas if row["topic"] == "b" and row["partition"] == 1]
    assert picked(of_b, "broker_id", "is_preferred", "is_leader", "is_in_sync", "is_offline") == [
        (2, True, False, False, True),
        (3, False, True, True, False),
        (1, False, False, True, False),
    ]
    assert {row["topic_id"] for row in of_b} == {t["topic_id"] for t in topics if t["topic"] == "b"}
    assert not any(row["is_leader"] for row in replicas if row["topic"] == "lost")


def test_a_topic_that_is_not_listed_any_more_went_or_is_refused() -> None:
    code = TOPIC_AUTHORIZATION_FAILED
    made = MadeCluster(
        topics={"a": 1, "hidden": 1}, refused={("DescribeTopicPartitions", "hidden"): code}
    )
    refusal = ("TOPIC_AUTHORIZATION_FAILED", {"topic": "hidden"})
    for table in ("topics", "replicas", "active_producers"):
        rows, gaps = seen(made, table, "a", "hidden", "deleted")
        assert {row["topic"] for row in rows} <= {"a"}
        assert gaps == [refusal]
    _, gaps = seen(made, "configs", "hidden")
    assert gaps == [(refusal[0], {"entity_type": "topic", "entity_name": "hidden"})]


CONFIGURED = {
    (CLIENT_METRICS, "all"): [("metrics", "*", OF_RESOURCE)],
    (TOPIC, "a"): [("retention.ms", "5", ON_TOPIC), ("segment.ms", "7", BY_DEFAULT)],
    (BROKER, "1"): [("ssl.key.password", "secret", 4), ("new", "x", 99), ("unset", None, 5)],
}


def test_configs_of_resources_topics_and_brokers() -> None:
    rows, gaps = seen(MadeCluster(topics={"a": 1}, configs=CONFIGURED, fenced={3}), "configs")
    assert gaps == [
        ("BROKER_NOT_AVAILABLE", {"entity_type": "broker", "entity_name": "3"}),
    ]
    names = ("entity_type", "entity_name", "config_key", "config_value", "config_source")
    assert picked(rows, *names) == [
        ("client-metrics", "all", "metrics", "*", "DYNAMIC_CLIENT_METRICS_CONFIG"),
        ("topic", "a", "retention.ms", "5", "DYNAMIC_TOPIC_CONFIG"),
        ("broker", "1", "ssl.key.password", None, "STATIC_BROKER_CONFIG"),
        ("broker", "1", "new", "x", "99"),
        ("broker", "1", "unset", None, "DEFAULT_CONFIG"),
    ]
    assert [row["config_key"] for row in rows if row["is_sensitive"]] == ["ssl.key.password"]


def test_a_long_value_is_cut_and_counted() -> None:
    long = {(TOPIC, "a"): [("follower.replication.throttled.replicas", "1:2," * 20_000, ON_TOPIC)]}
    rows, gaps = seen(MadeCluster(topics={"a": 1}, configs=long), "configs")
    assert [len(row["config_value"]) for row in rows] == [configs.MAX_CHARS]
    assert [gap[0] for gap in gaps] == ["value_cut"]


@cases(
    ("code", "answer", "gap"),
    ("stock Kafka", 42, "refused: 42 Invalid", []),
    ("a broker of KIP-936", 0, "accepted", []),
    (
        "a login without the right",
        CLUSTER_AUTHORIZATION_FAILED,
        None,
        [("CLUSTER_AUTHORIZATION_FAILED", {"setting": "probe.producer_ids_rate"})],
    ),
)
def test_whether_the_cluster_takes_producer_ids_rate(
    code: int, answer: str | None, gap: list[Any]
) -> None:
    made = MadeCluster(refused={("AlterClientQuotas", "producer_ids_rate"): code})
    rows, gaps = seen(made, "settings")
    assert {row["setting"]: row["setting_value"] for row in rows} == (
        {"probe.producer_ids_rate": answer} if answer else {}
    )
    assert gaps == gap


def test_quotas_tell_defaults_from_parts_that_are_not_there() -> None:
    made = MadeCluster(
        quotas=[
            ({"user": "u'", "client-id": None}, {"request_percentage": 12.5}),
            ({"ip": None}, {"connection_creation_rate": 3.0}),
        ]
    )
    rows, gaps = seen(made, "client_quotas")
    assert gaps == []
    assert rows[0] == {
        "user": "u'",
        "is_default_user": False,
        "client_id": None,
        "is_default_client_id": True,
        "ip": None,
        "is_default_ip": False,
        "config_key": "request_percentage",
        "quota": 12.5,
    }
    assert picked(rows[1:], "ip", "is_default_ip", "quota") == [(None, True, 3.0)]


def test_sizes_by_log_dir_and_what_a_broken_one_hides() -> None:
    made = MadeCluster(
        topics={"a": 2}, fenced={3}, refused={("DescribeLogDirs", "/broken"): STORAGE_ERROR}
    )
    rows, gaps = seen(made, "replica_sizes")
    assert gaps == [
        ("BROKER_NOT_AVAILABLE", {"broker_id": 3}),
        ("KAFKA_STORAGE_ERROR", {"broker_id": 1, "log_dir": "/broken"}),
        ("KAFKA_STORAGE_ERROR", {"broker_id": 2, "log_dir": "/broken"}),
    ]
    assert picked(rows, "broker_id", "partition", "size_bytes") == [
        (1, 0, 100),
        (1, 1, 101),
        (2, 0, 100),
        (2, 1, 101),
    ]


def test_what_reassignments_add_and_remove() -> None:
    made = MadeCluster(moves={("a", 0): ([3, 2], [1]), ("b", 4): ([1], [])})
    rows, gaps = seen(made, "moving_replicas")
    assert gaps == []
    assert picked(rows, "topic", "partition", "broker_id", "role") == [
        ("a", 0, 3, "adding"),
        ("a", 0, 2, "adding"),
        ("a", 0, 1, "removing"),
        ("b", 4, 1, "adding"),
    ]


def test_refused_moves_leave_those_that_are_known() -> None:
    code = CLUSTER_AUTHORIZATION_FAILED
    made = MadeCluster(refused={("ListPartitionReassignments", None): code})
    assert seen(made, "moving_replicas") == ([], [("CLUSTER_AUTHORIZATION_FAILED", {})])


STATE = {
    "producer_id": 7,
    "producer_epoch": 0,
    "last_sequence": 41,
    "last_timestamp": 1_700_000_000_123,
    "coordinator_epoch": -1,
    "current_txn_start_offset": -1,
}


def test_producers_are_asked_of_their_leaders() -> None:
    made = MadeCluster(
        topics={"a": 3, "lost": 1},
        producers={
            ("a", 0): [STATE, STATE | {"producer_id": 8, "last_timestamp": 2**62}],
            ("a", 1): [STATE | {"last_sequence": -1, "last_timestamp": -1}],
        },
        refused={("DescribeProducers", ("a", 2)): NOT_LEADER},
    )
    rows, gaps = seen(made, "active_producers")
    assert sorted(gaps) == [
        ("LEADER_NOT_AVAILABLE", {"topic": "lost", "partition": 0}),
        ("NOT_LEADER_FOR_PARTITION", {"topic": "a", "partition": 2}),
    ]
    assert picked(rows, "broker_id", "partition", "producer_id", "last_sequence") == [
        (1, 0, 7, 41),
        (1, 0, 8, 41),
        (2, 1, 7, None),
    ]
    times = [row["last_timestamp"] and row["last_timestamp"].timestamp() for row in rows]
    assert times == [1_700_000_000.123, None, None]
    assert {row["current_transaction_start_offset"] for row in rows} == {None}


def test_transactional_ids_by_coordinator() -> None:
    made = MadeCluster(
        transactions={1: [("tx", 9)]}, refused={("ListTransactions", 2): LOADING}, unreachable={3}
    )
    rows, gaps = seen(made, "transactional_ids")
    assert picked(rows, "transactional_id", "producer_id", "broker_id", "transaction_state") == [
        ("tx", 9, 1, "Ongoing")
    ]
    assert gaps == [
        ("COORDINATOR_LOAD_IN_PROGRESS", {"broker_id": 2}),
        ("KafkaConnectionError", {"broker_id": 3}),
    ]


def test_what_several_tables_need_is_asked_once() -> None:
    made = MadeCluster(topics={"a": 3})
    observer = ClusterObserver(ClusterState(made), set)
    for table in sections.SNAPSHOT_TABLES:
        observer.observed(table)
    apis = Counter(api for api, _ in made.sent)
    assert apis["DescribeCluster"] == apis["DescribeTopicPartitions"] == 1
    assert apis["DescribeProducers"] == apis["ListTransactions"] == apis["DescribeLogDirs"] == 3


def test_what_is_hidden_in_facts_is_hidden_in_snapshots_too() -> None:
    names = Pseudonyms(b"k" * 32, "k1")
    made = MadeCluster(
        configs={(CLIENT_METRICS, "s"): [("match", "client_id=orders", OF_RESOURCE)]},
        quotas=[
            ({"client-id": "orders"}, {"producer_byte_rate": 1.0}),
            ({"user": "ann", "client-id": None}, {"producer_byte_rate": 1.0}),
            ({"ip": "10.1.2.3"}, {"connection_creation_rate": 1.0}),
        ],
    )
    observer = ClusterObserver(ClusterState(made), set, (), names)
    quotas = observer.observed(CLIENT_QUOTAS).rows.to_pylist()
    assert picked(quotas, "user", "client_id", "ip", "is_default_client_id") == [
        (None, names.pseudonym("client_id", "orders"), None, False),
        ("ann", None, None, True),
        (None, None, names.pseudonym("client_address", "10.1.2.3"), False),
    ]
    (match,) = observer.observed(CONFIGS).rows.to_pylist()
    assert match["config_value"] == f"client_id={names.pseudonym('client_id', 'orders')}"
