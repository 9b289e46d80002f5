"""The value before and after each change of a config or quota, by the log and by snapshots."""

from ...rows import Row, altered, at, config, limited, quota
from .view_tables import by_case, picked

ORDERS = {"entity_type": "topic", "entity_name": "orders"}
RETENTION, SET_BY = "retention.ms", {"set_at": at(50), "set_by": "User:admin"}
PRODUCED = "producer_byte_rate"
LIST = "leader.replication.throttled.replicas"
ANOTHER = config(0, "metrics", "a.")
"""Of another entity: from here on snapshots exist."""


def in_log(second: float, value: str | None, **others: object) -> Row:
    return altered(second, RETENTION, value, **others)


def in_snapshot(second: float, value: str | None) -> Row:
    return config(second, RETENTION, value, **ORDERS)


CASES: dict[str, dict[str, list[Row]]] = {
    "set and deleted between snapshots": {
        "configs": [ANOTHER],
        "config_alterations": [in_log(10, "5"), in_log(20, None)],
    },
    "both have it": {
        "configs": [in_snapshot(0, "1"), in_snapshot(60, "5")],
        "config_alterations": [in_log(50, "5")],
    },
    "by a snapshot alone": {"configs": [in_snapshot(0, "1"), in_snapshot(60, "5")]},
    "found by a later snapshot": {"configs": [ANOTHER, in_snapshot(60, "5")]},
    "removed, by a snapshot": {"configs": [in_snapshot(0, "1"), in_snapshot(60, None)]},
    "the log does not show the value": {
        "configs": [in_snapshot(0, "1"), in_snapshot(60, "5")],
        "config_alterations": [altered(50, RETENTION, None, operation="SET")],
    },
    "nothing is older": {"config_alterations": [in_log(50, "5")]},
    "created with the topic": {"config_alterations": [in_log(50, "5", api="CREATE_TOPICS")]},
    "an entry of a list": {
        "configs": [config(0, LIST, "0:1", **ORDERS), config(60, LIST, "0:1,1:1", **ORDERS)],
        "config_alterations": [altered(50, LIST, "1:1", operation="APPEND")],
    },
    "set again to what it was": {
        "configs": [in_snapshot(0, "5")],
        "config_alterations": [in_log(50, "5")],
    },
    "refused": {
        "configs": [in_snapshot(0, "1")],
        "config_alterations": [in_log(50, "5", error_code=42)],
    },
    "all configs of the topic": {
        "configs": [in_snapshot(0, "1")],
        "config_alterations": [
            in_log(10, "5"),
            altered(20, "", None, config_key=None, api="DELETE_TOPICS"),
        ],
    },
    "all but what the request sets": {
        "configs": [in_snapshot(0, "1")],
        "config_alterations": [
            altered(20, "", None, config_key=None, api="ALTER_CONFIGS"),
            in_log(20, "5", api="ALTER_CONFIGS", position=1),
        ],
    },
    "a quota": {
        "client_quotas": [
            quota(0, PRODUCED, 1e6, user="alice"),
            quota(60, PRODUCED, 2e6, user="alice", **SET_BY),
        ],
        "config_alterations": [limited(50, PRODUCED, "2000000")],
    },
    "a quota of any client id of a user": {
        "client_quotas": [
            quota(0, "request_percentage", 50.5, user="alice", is_default_client_id=True),
            quota(60, "request_percentage", None, user="alice", is_default_client_id=True),
        ]
    },
}
SHOWN = ("changed_at", "known_by", "value_before", "is_before_known", "value_after")
SHOWN += ("is_after_known",)


def test_a_change_has_the_value_before_and_after() -> None:
    sql = "SELECT * FROM config_value_changes WHERE entity_type <> 'client-metrics' "
    changes = by_case(CASES, sql + "ORDER BY changed_at")
    log, snapshot = "request_log", "snapshot"
    assert {case: picked(rows, *SHOWN) for case, rows in changes.items()} == {
        "set and deleted between snapshots": [
            (at(10), log, None, True, "5", True),
            (at(20), log, "5", True, None, True),
        ],
        "both have it": [(at(50), log, "1", True, "5", True)],
        "by a snapshot alone": [(at(60), snapshot, "1", True, "5", True)],
        "found by a later snapshot": [(at(60), snapshot, None, True, "5", True)],
        "removed, by a snapshot": [(at(60), snapshot, "1", True, None, True)],
        "the log does not show the value": [
            (at(50), log, "1", True, None, False),
            (at(60), snapshot, None, False, "5", True),
        ],
        "nothing is older": [(at(50), log, None, False, "5", True)],
        "created with the topic": [(at(50), log, None, True, "5", True)],
        "an entry of a list": [
            (at(50), log, "0:1", True, None, False),
            (at(60), snapshot, None, False, "0:1,1:1", True),
        ],
        "set again to what it was": [],
        "refused": [],
        "all configs of the topic": [
            (at(10), log, "1", True, "5", True),
            (at(20), log, "5", True, None, True),
        ],
        "all but what the request sets": [(at(20), log, "1", True, "5", True)],
        "a quota": [(at(50), log, "1000000", True, "2000000", True)],
        "a quota of any client id of a user": [(at(60), snapshot, "50.5", True, None, True)],
    }
    (removed,) = changes["a quota of any client id of a user"]
    assert picked([removed], "entity_type", "entity_name", "entity_client_id") == [
        ("user", "alice", "")
    ]
