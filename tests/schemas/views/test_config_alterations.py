"""Who altered which config last, and which other programs alter configs or move replicas."""

from typing import Any

import pytest

from ... import case_tables
from ...cases import cases
from ...rows import HOSTILE, Row, altered, at, config, limited, reassigned, row, setting
from .view_tables import Tables, picked, view

LEADERS = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"
PRODUCED = "producer_byte_rate"
US = "User:us"
OURS = [setting("own_principal", US)]


def emptied(second: float, **others: Any) -> Row:
    """All configs of a topic deleted, with the topic."""
    return altered(second, "", None, config_key=None, api="DELETE_TOPICS", **others)


def last(second: float, operation: str, value: str | None, **others: Any) -> Row:
    """What is told of the last alteration."""
    about = {"altered_at": at(second), "operation": operation, "config_value": value}
    return about | {"principal": "User:admin", "is_own": False, "is_order_known": True} | others


@cases(
    ("alterations", "writer"),
    *case_tables.rows(
        __file__,
        "the_last_alteration_of_a_config",
        altered,
        last,
        emptied,
        RATE=RATE,
        US=US,
        LEADERS=LEADERS,
    ),
)
def test_the_last_alteration_of_a_config(alterations: list[Row], writer: Row) -> None:
    content = {"config_alterations": alterations, "settings": OURS}
    assert picked(view("config_writers", content), *writer) == [tuple(writer.values())]


def test_entities_of_quotas_are_told_apart() -> None:
    entities: list[Row] = [
        {},
        {"entity_name": ""},
        {"entity_client_id": ""},
        {"entity_client_id": "x"},
        {"entity_type": "client-id", "entity_name": "alice"},
        {"entity_type": "ip", "entity_name": "alice"},
        {"entity_name": HOSTILE, "entity_client_id": HOSTILE},
    ]
    alterations = [
        limited(10 * n + later, PRODUCED, str(n), **entity)
        for n, entity in enumerate(entities)
        for later in (0, 1)
    ]
    actual = view("config_writers ORDER BY altered_at", {"config_alterations": alterations})
    names = ("entity_type", "entity_name", "entity_client_id")
    alice = {"entity_type": "user", "entity_name": "alice", "entity_client_id": None}
    expected = [tuple((alice | entity)[name] for name in names) for entity in entities]
    assert picked(actual, *names) == expected
    last_ones = [(at(10 * n + 1), None) for n in range(len(entities))]
    assert picked(actual, "altered_at", "is_own") == last_ones


def managers(content: Tables, *names: str) -> list[Any]:
    actual = view("other_config_managers ORDER BY first_seen, kind", {"settings": OURS} | content)
    return picked(actual, "kind", *names)


@pytest.mark.parametrize(
    ("principal", "client_id", "kind"),
    [
        ("User:admin", "reassign-partitions-tool", "kafka-reassign-partitions"),
        ("User:admin", "adminclient-12", "admin_client"),
        ("User:operator", "quotaflow-admin", "quotaflow"),
        ("User:admin", "quotaflow-admin-2", "other"),
        ("User:admin", "kp-admin", "other"),
        ("User:admin", None, "other"),
        ("User:cruise-control", "adminclient-1", "cruise_control"),
        ("User:admin", "Kafka_Cruise_Control-1", "cruise_control"),
        ("User:CN=c-entity-topic-operator,O=io.strimzi", "adminclient-1", "strimzi"),
        ("User:to", "strimzi-topic-operator-3a5f", "strimzi"),
        ("User:CN=c-cruise-control,O=io.strimzi", "adminclient-1", "cruise_control"),
        ("User:infra", "terraform-provider-kafka", "terraform"),
        ("User:jikkou", "adminclient-1", "jikkou"),
        ("User:julie-ops", "adminclient-1", "julie"),
        ("User:julie", "adminclient-1", "admin_client"),
        ("User:a", "topicctl@host (github.com/segmentio/kafka-go)", "topicctl"),
        ("User:autothrottle", "rdkafka", "autothrottle"),
        (HOSTILE, HOSTILE, "other"),
    ],
)
def test_a_program_is_told_by_its_names(principal: str, client_id: str | None, kind: str) -> None:
    program = {"principal": principal, "client_id": client_id}
    content = {"config_alterations": [altered(1, RATE, "5", **program)]}
    assert managers(content, "principal", "client_id") == [(kind, principal, client_id)]


def test_what_a_program_alters_and_when() -> None:
    content = {
        "config_alterations": [
            altered(1, LEADERS, "0:1"),
            altered(2, RATE, "5"),
            altered(2, RATE, "5", principal=US),
            altered(9, RATE, "6", error_code=42),
            altered(9, "retention.ms", "6", api="CREATE_TOPICS"),
            emptied(9),
            limited(20, PRODUCED, "5"),
            limited(30, PRODUCED, None, error_code=None),
            limited(31, "", None, entity_type=None, config_key=None, error_code=None),
        ],
        "reassignment_changes": [
            reassigned(3, "requested", 2),
            reassigned(4, "cancelled", None, error_code=85),
            reassigned(5, "in_sync", 2),
            reassigned(6, "requested", 2, principal=US),
        ],
    }
    names = ("entity_types", "alterations", "evidence_code", "evidence", "first_seen", "last_seen")
    both = "ALTER_PARTITION_REASSIGNMENTS,INCREMENTAL_ALTER_CONFIGS"
    assert managers(content, *names) == [
        ("kafka-reassign-partitions", "broker,replicas,topic", 3, "requests", both, at(1), at(3)),
        ("admin_client", "user", 3, "requests", "ALTER_CLIENT_QUOTAS", at(20), at(31)),
    ]


def test_how_many_entities_a_writer_altered_in_its_last_day() -> None:
    day_s = 24 * 3_600
    content = {
        "config_alterations": [
            limited(0, PRODUCED, "5", entity_name="of the day before"),
            *(limited(day_s + n, PRODUCED, "5", entity_name=f"u{n}") for n in range(3)),
            limited(day_s + 5, PRODUCED, "5", entity_name="u1"),
            limited(day_s + 6, PRODUCED, "5", entity_name="u1", entity_client_id="a"),
            limited(day_s + 7, "consumer_byte_rate", "5", entity_name="u1", entity_client_id="a"),
        ]
    }
    assert managers(content, "alterations", "recent_entities") == [("admin_client", 7, 4)]


def test_traces_of_programs_that_a_snapshot_found() -> None:
    names = ("__CruiseControlMetrics", "__KafkaCruiseControlModelTrainingSamples", "orders")
    names += ("strimzi.cruisecontrol.metrics", "__strimzi_store_topic", "CruiseControl")
    topics = [row("topics", n, {}, topic_id=f"t{n}", topic=name) for n, name in enumerate(names)]
    removed = topics[1] | {"event_time": at(60), "is_removed": True}
    callback = {"entity_type": "broker", "config_value": "com.x.Callback"}
    configs = [
        config(n, "client.quota.callback.class", None, entity_name=name, is_removed=False, **extra)
        for n, name, extra in ((70, "1", callback), (71, "2", callback), (72, "3", {}))
    ]
    content = {"topics": [*topics, removed], "configs": configs}
    columns = ("evidence_code", "evidence", "entity_types", "first_seen", "last_seen")
    of_callback = ("quota_callback", "quota_callback", "com.x.Callback", "user", at(70))
    assert managers(content, *columns, "principal", "alterations") == [
        ("cruise_control", "topic", names[0], None, at(0), None, None, None),
        ("cruise_control", "topic", names[1], None, at(1), at(60), None, None),
        ("cruise_control", "topic", names[3], None, at(3), None, None, None),
        ("strimzi", "topic", names[4], None, at(4), None, None, None),
        (*of_callback, None, None, None),
    ]


def test_without_a_known_login_everybody_is_another() -> None:
    content = {"config_alterations": [altered(1, RATE, "5", principal=US)], "settings": []}
    assert managers(content, "principal") == [("kafka-reassign-partitions", US)]
