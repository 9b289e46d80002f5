"""Views over what snapshots saw: each state from when to when, and what stands now."""

from ...rows import at, quota
from .view_tables import picked, view

SEEN = {"cluster_id": "c1", "is_removed": False}
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
