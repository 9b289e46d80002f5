"""Whether throttles bite, from requests and snapshots. Each case is a cluster."""

from collections import defaultdict
from datetime import timedelta

import pytest

from ....delta_tables import NOON
from ....rows import Row
from .throttle_rows import (
    APPEND,
    BROKER,
    DELETE,
    FOLLOWER_RATE,
    FOLLOWERS,
    LEADER_RATE,
    LEADERS,
    SET,
    TOPIC,
    alter,
    computed,
    config,
    deleted,
    fetch,
    in_sync,
    names,
    of_cluster,
    part,
    reassign,
    request,
    seen,
)

NAMED = names(0, ("orders", "id1"))
MIB = 2**20
LISTED = alter(1, TOPIC, "orders", (LEADERS, SET, "0:1"), (FOLLOWERS, SET, "0:2"))
RATED = [
    alter(2, BROKER, str(id_), (LEADER_RATE, SET, "1000000"), (FOLLOWER_RATE, SET, "1000000"))
    for id_ in (1, 2)
]
AHEAD = part(0, fetch_offset=90)
BEHIND = [
    *(fetch(4 + n, 1, 2, part(MIB, fetch_offset=10 + n)) for n in range(8)),
    fetch(12, 1, 2, part(None, fetch_offset=20, high_watermark=None)),
    fetch(13, 1, 2, forgotten=[{"topic_id": "id1", "partition": 0}]),
]
APART = [
    fetch(4, 1, 2, part(None, fetch_offset=10, high_watermark=None)),
    fetch(5, 1, 2, part(MIB, fetch_offset=None)),
]
TAKEN_AWAY = [
    alter(31, TOPIC, "orders", (LEADERS, DELETE, None), (FOLLOWERS, DELETE, None)),
    *(
        alter(32, BROKER, str(id_), (LEADER_RATE, DELETE, None), (FOLLOWER_RATE, DELETE, None))
        for id_ in (1, 2)
    ),
]
LEADER, FOLLOWER = ("orders", 0, "leader", 1, 2), ("orders", 0, "follower", 2, 1)
BY_ADMIN = {"list_set_by": "User:admin", "list_set_by_client_id": "tool"}
SEEN = {
    "configs": [config(-600, "broker", id_, "log.dir", "d") for id_ in ("1", "2")],
    "brokers": [seen(-600, broker_id=id_) for id_ in (1, 2, 3)],
}
OTHER_SIDES = {
    (0, None, None, side, id_, None): {"reason": "rate_without_list", "listed": "unlisted"}
    for side, id_ in (("leader", 2), ("follower", 1))
}
Case = tuple[list[Row], dict[str, list[Row]], dict[tuple[object, ...], Row]]

CASES: dict[str, Case] = {
    "a move under a throttle, in the log alone, that came and went": (
        [
            NAMED,
            LISTED,
            *RATED,
            reassign(3, "orders", [2]),
            *BEHIND,
            in_sync(30, "id1", 1, 2),
            *TAKEN_AWAY,
        ],
        {},
        {
            (0, *LEADER): BY_ADMIN
            | {"listed": "entry", "rate": 1e6, "rate_source": "dynamic_broker"}
            | {"is_moving": True, "in_isr": False, "in_isr_source": "fetch_offset"}
            | {"offset_lag": 70, "bytes": 8 * MIB, "peak_throttled_rate": 2.0 * MIB}
            | {"stalled_fetches": 1, "is_effective": True, "is_biting": True, "reason": None}
            | {"is_configured": False, "rate_set_by": "User:admin"},
            (0, *FOLLOWER): {"stalled_fetches": 1, "is_biting": True, "is_configured": False},
            **OTHER_SIDES,
        },
    ),
    "a list, and neither log nor snapshot shows a rate": (
        [NAMED, LISTED, BEHIND[0]],
        {},
        {
            (0, *LEADER): {"is_effective": None, "reason": "rate_unknown", "rate_source": None},
            (0, *FOLLOWER): {"is_biting": None, "reason": "rate_unknown"},
        },
    ),
    "a list, and a snapshot without a rate": (
        [NAMED, LISTED, BEHIND[0]],
        SEEN,
        {
            (0, *LEADER): {"is_effective": False, "reason": "list_without_rate"}
            | {"rate_source": "unset", "is_configured": True},
            (0, *FOLLOWER): {"reason": "list_without_rate"},
        },
    ),
    "all replicas, in sync by the log, with nothing left to read": (
        [
            NAMED,
            in_sync(-70, "id1", 1, 2),
            *RATED,
            alter(3, TOPIC, "orders", (LEADERS, SET, "*"), (FOLLOWERS, SET, "*")),
            fetch(4, 1, 2, AHEAD),
        ],
        {},
        {
            (0, *LEADER): {"listed": "wildcard", "reason": "in_isr", "in_isr": True}
            | {"in_isr_source": "alter_partition", "is_moving": False, "offset_lag": 0},
            (0, *FOLLOWER): {"listed": "wildcard", "reason": "follower_caught_up"},
            **OTHER_SIDES,
        },
    ),
    "brokers that do not lead, or are no longer there": (
        [
            NAMED,
            alter(1, TOPIC, "orders", (LEADERS, SET, "0:3,0:9")),
            alter(2, BROKER, "3", (LEADER_RATE, SET, "1000000")),
            BEHIND[0],
            alter(2, BROKER, "9", (LEADER_RATE, SET, "1000000")),
        ],
        SEEN,
        {
            (0, "orders", 0, "leader", 3, None): {"reason": "not_leader", "is_effective": False},
            (0, "orders", 0, "leader", 9, None): {"reason": "broker_gone", "bytes": None},
        },
    ),
    "a rate alone, of all brokers": (
        [NAMED, alter(1, BROKER, "", (FOLLOWER_RATE, SET, "5000000")), BEHIND[0]],
        {},
        {
            (0, None, None, "follower", id_, None): {
                "rate": 5e6,
                "rate_source": "dynamic_default",
                "reason": "rate_without_list",
                "is_configured": True,
            }
            for id_ in (1, 2)
        },
    ),
    "a rate in a file, with a list and in-sync replicas by snapshots": (
        [NAMED, fetch(4, 1, 2, AHEAD)],
        {
            "configs": [
                config(-600, "topic", "orders", LEADERS, "0:1"),
                config(-600, "broker", "1", LEADER_RATE, "9")
                | {"config_source": "STATIC_BROKER_CONFIG"},
            ],
            "replicas": [
                seen(-600, topic_id="id1", topic="orders", partition=0, broker_id=2)
                | {"is_in_sync": True}
            ],
        },
        {
            (0, *LEADER): {"reason": "static_rate_ignored", "rate": 9.0, "list_set_by": None}
            | {"in_isr": True, "in_isr_source": "snapshot"}
        },
    ),
    "moved, and neither log nor snapshot shows lists": (
        [NAMED, reassign(3, "orders", [1, 2]), *BEHIND],
        {},
        {
            (0, *LEADER): {"listed": None, "reason": "list_unknown", "is_moving": True},
            (0, *FOLLOWER): {"reason": "list_unknown"},
        },
    ),
    "moved, and no list names it": (
        [NAMED, reassign(3, "orders", [1, 2]), *BEHIND],
        SEEN,
        {
            (0, *LEADER): {"listed": "unlisted", "reason": "no_throttle"},
            (0, *FOLLOWER): {"listed": "unlisted", "reason": "no_throttle"},
        },
    ),
    # Within a session (KIP-227) a request names what changed, and a later answer has the records.
    "moved, no list names it, and no request that names it is answered with records": (
        [NAMED, reassign(3, "orders", [1, 2]), *APART],
        SEEN,
        {
            (0, *LEADER): {"listed": "unlisted", "reason": "no_throttle", "offset_lag": 80},
            (0, *FOLLOWER): {"listed": "unlisted", "reason": "no_throttle", "offset_lag": 80},
        },
    ),
    "a topic that is deleted in the middle of its move": (
        [
            NAMED,
            LISTED,
            *RATED,
            *BEHIND,
            request(60, "FETCH", replica_id=2),
            deleted(65, "orders"),
            request(130, "FETCH", replica_id=2),
        ],
        {},
        {
            (0, *LEADER): {"is_configured": True, "is_biting": True},
            (0, *FOLLOWER): {"is_configured": True},
            (1, "orders", 0, "leader", 1, None): {"is_configured": False}
            | {"reason": "not_replicating"},
            (1, "orders", 0, "follower", 2, None): {"is_configured": False},
            **{
                (minute, None, None, side, id_, None): {"reason": "rate_without_list"}
                for side, ids in (("leader", (1, 2)), ("follower", (1, 2)))
                for id_ in ids
                for minute in (0, 1, 2)
                if minute == 2 or (side, id_) in (("leader", 2), ("follower", 1))
            },
        },
    ),
    "in the form of the KIP's text, and appended to an unknown list": (
        [NAMED, alter(1, TOPIC, "clicks", (LEADERS, APPEND, "0:1")), BEHIND[0]],
        {"configs": [config(-600, "topic", "orders", LEADERS, "0-1")]},
        {
            (0, "orders", None, "leader", None, None): {"list_malformed": "0-1"}
            | {"listed": "entry", "reason": "no_throttle"},
            (0, "clicks", 0, "leader", 1, None): {"listed": "entry", "reason": "rate_unknown"},
        },
    ),
}


@pytest.fixture(scope="module")
def rows_by_case() -> dict[str, list[Row]]:
    """Rows of each case from noon on, all computed together."""
    facts, snapshots = list[Row](), defaultdict[str, list[Row]](list)
    for case, (requests, case_snapshots, _) in CASES.items():
        facts += of_cluster(requests, case)
        for name, rows in case_snapshots.items():
            snapshots[name] += of_cluster(rows, case)
    of_case = defaultdict[str, list[Row]](list)
    for row in computed(facts, snapshots)["replication_throttles"]:
        if row["event_time"] >= NOON:
            of_case[row["cluster_id"]].append(row)
    return of_case


KEY = ("topic", "partition", "side", "broker_id", "peer_broker_id")


@pytest.mark.parametrize("case", CASES)
def test_whether_a_throttle_bites(rows_by_case: dict[str, list[Row]], case: str) -> None:
    expected = CASES[case][2]
    rows = {
        ((row["event_time"] - NOON) // timedelta(minutes=1), *(row[name] for name in KEY)): row
        for row in rows_by_case[case]
    }
    assert rows.keys() == expected.keys()
    assert {key: {name: rows[key][name] for name in row} for key, row in expected.items()} == (
        expected
    )
    assert len(rows) == len(rows_by_case[case])
