"""Views over what snapshots saw: each state from when to when, and what stands now."""

from ...rows import Row, at, limited, quota
from .view_tables import Picked, Tables, assert_shown, picked, view

SEEN = {"cluster_id": "c1", "is_removed": False}
PRODUCED = "producer_byte_rate"


def of_alice(second: float, value: float | None, **others: object) -> Row:
    return quota(second, PRODUCED, value, user="alice", **others)


def set_to(second: float, value: str | None, **others: object) -> Row:
    return limited(second, PRODUCED, value, **others)


ADMIN = "User:admin"
SETTERS: dict[str, tuple[Tables, Picked]] = {
    "its line came after the snapshot": (
        {"client_quotas": [of_alice(60, 5.0)], "config_alterations": [set_to(59, "5")]},
        [(ADMIN, at(59))],
    ),
    "set while the snapshot was read": (
        {"client_quotas": [of_alice(60, 5.0)], "config_alterations": [set_to(64, "5")]},
        [(ADMIN, at(64))],
    ),
    "of any client id": (
        {
            "client_quotas": [of_alice(60, 5.0, is_default_client_id=True)],
            "config_alterations": [set_to(59, "5", entity_client_id="")],
        },
        [(ADMIN, at(59))],
    ),
    "set otherwise since the snapshot": (
        {
            "client_quotas": [of_alice(60, 5.0)],
            "config_alterations": [set_to(59, "5"), set_to(64, "7"), set_to(600, "5")],
        },
        [(ADMIN, at(59))],
    ),
    "the snapshot knew": (
        {
            "client_quotas": [of_alice(60, 5.0, set_at=at(50), set_by="User:root")],
            "config_alterations": [set_to(50, "5", principal="User:root"), set_to(65, "5")],
        },
        [("User:root", at(50))],
    ),
    # A login that set it later did not set what the snapshot saw.
    "nobody's line": (
        {"client_quotas": [of_alice(60, 5.0)], "config_alterations": [set_to(600, "5")]},
        [(None, at(60))],
    ),
    "set otherwise in between": (
        {
            "client_quotas": [of_alice(60, 5.0)],
            "config_alterations": [set_to(10, "5"), set_to(20, None)],
        },
        [(None, at(60))],
    ),
    "another value was seen in between": (
        {
            "client_quotas": [of_alice(30, 7.0), of_alice(60, 5.0)],
            "config_alterations": [set_to(10, "5")],
        },
        [(None, at(60))],
    ),
    "refused": (
        {
            "client_quotas": [of_alice(60, 5.0)],
            "config_alterations": [set_to(59, "5", error_code=42)],
        },
        [(None, at(60))],
    ),
    "of one client id": (
        {
            "client_quotas": [of_alice(60, 5.0)],
            "config_alterations": [set_to(59, "5", entity_client_id="app")],
        },
        [(None, at(60))],
    ),
}


def test_a_quota_says_who_set_it_where_the_log_shows_it() -> None:
    assert_shown(SETTERS, "current_client_quotas", "set_by", "valid_from")


TOPIC = SEEN | {"topic_id": "t1", "topic": "orders", "partition_count": 1}


def test_the_current_quota_is_the_last_one_that_a_snapshot_saw() -> None:
    key = "producer_byte_rate"
    actual = [
        quota(0, key, 1.0, user="alice"),
        quota(60, key, 2.0, user="alice", set_at=at(45), set_by="User:admin"),
        quota(120, key, None, user="alice", set_at=at(100), set_by="User:admin"),
        quota(180, key, 3.0, user="alice"),
        quota(0, key, 9.0, is_default_user=True),
    ]
    current = view("current_client_quotas ORDER BY quota", {"client_quotas": actual})
    assert picked(current, "user", "is_default_user", "quota") == [
        ("alice", False, 3.0),
        (None, True, 9.0),
    ]


def test_a_topic_made_again_is_another() -> None:
    actual = [
        TOPIC | {"event_time": at(0)},
        TOPIC | {"event_time": at(60), "partition_count": 3},
        TOPIC | {"event_time": at(120), "is_removed": True},
        TOPIC | {"event_time": at(120), "topic_id": "t2"},
    ]
    history = view("topic_history ORDER BY valid_from", {"topics": actual})
    assert picked(history, "topic_id", "partition_count", "valid_from", "valid_to") == [
        ("t1", 1, at(0), at(60)),
        ("t1", 3, at(60), at(120)),
        ("t2", 1, at(120), None),
    ]
    assert picked(view("current_topics", {"topics": actual}), "topic_id") == [("t2",)]


def test_a_replica_and_a_broker_as_of_a_time() -> None:
    replica = TOPIC | {"partition": 0, "broker_id": 1, "event_time": at(0), "is_leader": True}
    del replica["partition_count"]
    broker = SEEN | {"broker_id": 1, "event_time": at(0), "rack": "az-a"}
    content = {
        "replicas": [replica, replica | {"event_time": at(60), "is_leader": False}],
        "brokers": [broker, broker | {"event_time": at(30), "is_removed": True}],
    }
    moment = "TIMESTAMP '2026-11-21T12:00:45Z'"
    in_force = f"valid_from <= {moment} AND (valid_to IS NULL OR valid_to > {moment})"
    assert picked(view(f"replica_history WHERE {in_force}", content), "is_leader") == [(True,)]
    assert view(f"broker_history WHERE {in_force}", content) == []
    assert picked(view("current_replicas", content), "is_leader") == [(False,)]
    assert view("current_brokers", content) == []
