"""The value before and after each change of a config or quota, by the log and by snapshots."""

from ...rows import Row, altered, at, config, limited, quota, row
from .view_tables import Picked, Tables, assert_shown, picked

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


def written(second: float, value: str | None, **others: object) -> Row:
    """A change that quotaflow wrote and read back."""
    did = "DELETE" if value is None else "SET"
    given = ORDERS | {"step": "done", "purpose": "apply", "operation": did} | others
    return row("config_changes", second, given, config_key=RETENTION, config_value=value)


LOG, SNAPSHOT, OURS = "request_log", "snapshot", "quotaflow"
SEEN = {"configs": [in_snapshot(0, "1"), in_snapshot(60, "5")]}
BEFORE = {"configs": [in_snapshot(0, "1")]}
TAKEN = {
    "pipeline_progress": [
        row("pipeline_progress", second, {"job": "snapshot", "target": "configs", "outcome": "in"})
        for second in (0, 60, 70)
    ]
}
OF_ANY_CLIENT_ID = "a quota of any client id of a user"
CASES: dict[str, tuple[Tables, Picked]] = {
    "set and deleted between snapshots": (
        {"configs": [ANOTHER], "config_alterations": [in_log(10, "5"), in_log(20, None)]},
        [(at(10), LOG, None, True, "5", True), (at(20), LOG, "5", True, None, True)],
    ),
    "both have it": (
        SEEN | {"config_alterations": [in_log(50, "5")]},
        [(at(50), LOG, "1", True, "5", True)],
    ),
    # A snapshot has the time when it began.
    "set while the snapshot was read": (
        SEEN | {"config_alterations": [in_log(64, "5")]},
        [(at(64), LOG, "1", True, "5", True)],
    ),
    "removed while the snapshot was read": (
        {"configs": [in_snapshot(0, "1"), in_snapshot(60, None)]}
        | {"config_alterations": [in_log(64, None)]},
        [(at(64), LOG, "1", True, None, True)],
    ),
    "set, reset and set again while the snapshot was read": (
        SEEN | {"config_alterations": [in_log(61, "3"), in_log(62, "5"), in_log(63, None)]},
        [
            (at(61), LOG, "1", True, "3", True),
            (at(62), LOG, "3", True, "5", True),
            (at(63), LOG, "5", True, None, True),
        ],
    ),
    "a quota set while the snapshot was read": (
        {
            "client_quotas": [
                quota(0, PRODUCED, 1e6, user="alice"),
                quota(60, PRODUCED, 2e6, user="alice"),
            ],
            "config_alterations": [limited(64, PRODUCED, "2000000")],
        },
        [(at(64), LOG, "1000000", True, "2000000", True)],
    ),
    "set to another value while the snapshot was read": (
        SEEN | {"config_alterations": [in_log(64, "7")]},
        [(at(60), SNAPSHOT, "1", True, "5", True), (at(64), LOG, "5", True, "7", True)],
    ),
    "set to the same long after the snapshot": (
        SEEN | {"config_alterations": [in_log(121, "5")]},
        [(at(60), SNAPSHOT, "1", True, "5", True)],
    ),
    "set to the same after the next snapshot": (
        SEEN | TAKEN | {"config_alterations": [in_log(75, "5")]},
        [(at(60), SNAPSHOT, "1", True, "5", True)],
    ),
    "by a snapshot alone": (SEEN, [(at(60), SNAPSHOT, "1", True, "5", True)]),
    "found by a later snapshot": (
        {"configs": [ANOTHER, in_snapshot(60, "5")]},
        [(at(60), SNAPSHOT, None, True, "5", True)],
    ),
    "removed, by a snapshot": (
        {"configs": [in_snapshot(0, "1"), in_snapshot(60, None)]},
        [(at(60), SNAPSHOT, "1", True, None, True)],
    ),
    "the log does not show the value": (
        SEEN | {"config_alterations": [altered(50, RETENTION, None, operation="SET")]},
        [(at(50), LOG, "1", True, "5", True)],
    ),
    "the log shows the value of neither of two": (
        SEEN
        | {"config_alterations": [altered(s, RETENTION, None, operation="SET") for s in (40, 50)]},
        [(at(40), LOG, "1", True, None, False), (at(50), LOG, None, False, "5", True)],
    ),
    "the log does not show that nothing changed": (
        {"configs": [in_snapshot(0, "1"), in_snapshot(60, "1"), in_snapshot(90, "2")]}
        | {"config_alterations": [altered(50, RETENTION, None, operation="SET")]},
        [(at(90), SNAPSHOT, "1", True, "2", True)],
    ),
    "written by quotaflow, and the log ended": (
        BEFORE | {"config_changes": [written(50, "5"), written(70, None)]},
        [(at(50), OURS, "1", True, "5", True), (at(70), OURS, "5", True, None, True)],
    ),
    "written by quotaflow, and in the log": (
        BEFORE | {"config_alterations": [in_log(50, "5")], "config_changes": [written(51, "5")]},
        [(at(50), LOG, "1", True, "5", True)],
    ),
    "of what quotaflow wrote the log does not show the value": (
        BEFORE
        | {
            "config_alterations": [altered(50, RETENTION, None, operation="SET")],
            "config_changes": [written(51, "5")],
        },
        [(at(50), LOG, "1", True, "5", True)],
    ),
    # Whose value it was then is not known.
    "quotaflow wrote much later": (
        BEFORE
        | {
            "config_alterations": [altered(50, RETENTION, None, operation="SET")],
            "config_changes": [written(500, "5")],
        },
        [(at(50), LOG, "1", True, None, False), (at(500), OURS, None, False, "5", True)],
    ),
    "not written": (
        BEFORE | {"config_changes": [written(50, "5", step=step) for step in ("begun", "refused")]},
        [],
    ),
    "nothing is older": (
        {"config_alterations": [in_log(50, "5")]},
        [(at(50), LOG, None, False, "5", True)],
    ),
    "created with the topic": (
        {"config_alterations": [in_log(50, "5", api="CREATE_TOPICS")]},
        [(at(50), LOG, None, True, "5", True)],
    ),
    "an entry of a list": (
        {
            "configs": [config(0, LIST, "0:1", **ORDERS), config(60, LIST, "0:1,1:1", **ORDERS)],
            "config_alterations": [altered(50, LIST, "1:1", operation="APPEND")],
        },
        [(at(50), LOG, "0:1", True, "0:1,1:1", True)],
    ),
    "set again to what it was": (
        {"configs": [in_snapshot(0, "5")], "config_alterations": [in_log(50, "5")]},
        [],
    ),
    "refused": (BEFORE | {"config_alterations": [in_log(50, "5", error_code=42)]}, []),
    "all configs of the topic": (
        BEFORE
        | {
            "config_alterations": [
                in_log(10, "5"),
                altered(20, "", None, config_key=None, api="DELETE_TOPICS"),
            ]
        },
        [(at(10), LOG, "1", True, "5", True), (at(20), LOG, "5", True, None, True)],
    ),
    "all but what the request sets": (
        BEFORE
        | {
            "config_alterations": [
                altered(20, "", None, config_key=None, api="ALTER_CONFIGS"),
                in_log(20, "5", api="ALTER_CONFIGS", position=1),
            ]
        },
        [(at(20), LOG, "1", True, "5", True)],
    ),
    "a quota": (
        {
            "client_quotas": [
                quota(0, PRODUCED, 1e6, user="alice"),
                quota(60, PRODUCED, 2e6, user="alice", **SET_BY),
            ],
            "config_alterations": [limited(50, PRODUCED, "2000000")],
        },
        [(at(50), LOG, "1000000", True, "2000000", True)],
    ),
    OF_ANY_CLIENT_ID: (
        {
            "client_quotas": [
                quota(second, "request_percentage", value, user="alice", is_default_client_id=True)
                for second, value in ((0, 50.5), (60, None))
            ]
        },
        [(at(60), SNAPSHOT, "50.5", True, None, True)],
    ),
}


def test_a_change_has_the_value_before_and_after() -> None:
    changes = "config_value_changes WHERE entity_type <> 'client-metrics' ORDER BY changed_at"
    names = ("changed_at", "known_by", "value_before", "is_before_known", "value_after")
    actual = assert_shown(CASES, changes, *names, "is_after_known")
    entity = ("entity_type", "entity_name", "entity_client_id")
    assert picked(actual[OF_ANY_CLIENT_ID], *entity) == [("user", "alice", "")]
