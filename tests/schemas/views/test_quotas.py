"""Views of quota usage: who is nearest a quota, and what throttled whom."""

from quotaflow.udfs.rules.quota import NEAR_SHARE

from ...rows import Row, at, quota, request, used
from .view_tables import Tables, assert_outcomes, in_table, picked, view


def test_headroom_is_that_of_the_worst_window_of_the_last_hour() -> None:
    shared = {"client_id": "clicks", "quota_bucket_usage": 1_500.0, "headroom": -500.0}
    shared |= {"is_over": True}
    content = [
        used(-3_600, "producer_byte_rate", 9_000.0),
        used(-3_589, "producer_byte_rate", 100.0),
        used(0, "producer_byte_rate", 700.0, **shared | {"client_id": "orders"}),
        used(0, "producer_byte_rate", 800.0, **shared),
        used(0, "producer_byte_rate", 400.0, broker_id=2),
        used(0, "producer_byte_rate", 5e9, quota=None, headroom=None),
        # Another cluster's hour is its own.
        used(-9_000, "producer_byte_rate", 10.0, cluster_id="c2", enforcement="callback"),
    ]
    actual = view("quota_headroom ORDER BY cluster_id, broker_id", {"quota_usage": content})
    names = ("broker_id", "peak_usage", "headroom", "peak_share", "windows", "windows_over")
    assert picked(actual, *names, "client_ids", "enforcement") == [
        (1, 1_500.0, -500.0, 1.5, 2, 1, 2, "stock"),
        (2, 400.0, 600.0, 0.4, 1, 0, 1, "stock"),
        (1, 10.0, 990.0, 0.01, 1, 0, 1, "callback"),
    ]


BYTES, TIME = "producer_byte_rate", "request_percentage"
THROTTLES = {"throttled_requests": 2, "throttle_time_ms": 30.0}
OF_NONE = {"quota": None, "headroom": None}
SHARED = {"share_requests": 4, "is_lower_bound": True}
# Usage of a quota of 1,000, by the state of its bucket.
STATES: dict[tuple[str], dict[str, list[Row]]] = {
    ("free",): {
        "unused": [used(0, BYTES, 10.0)],
        "almost near": [used(0, BYTES, 1_000 * NEAR_SHARE - 1)],
    },
    ("near",): {
        "near": [used(0, BYTES, 1_000 * NEAR_SHARE)],
        "throttled by a quota of time": [
            used(0, BYTES, 900.0, throttled_by=TIME, **THROTTLES),
            used(0, TIME, 1.0, **OF_NONE),
        ],
        "another client was throttled": [
            used(0, BYTES, 900.0),
            used(0, BYTES, 1.0, **OF_NONE, principal="User:bob", throttled_by=BYTES, **THROTTLES),
        ],
        "throttled more than an hour ago": [
            used(-3_700, BYTES, 999.0, throttled_by=BYTES, **THROTTLES),
            used(0, BYTES, 900.0),
        ],
    },
    ("over",): {
        "over, and not throttled": [used(0, BYTES, 1_100.0)],
        "more than the quota without bytes of share consumers": [
            used(0, "consumer_byte_rate", 1_100.0, **SHARED)
        ],
    },
    ("throttled",): {
        "throttled just below it": [used(0, BYTES, 999.0, throttled_by=BYTES, **THROTTLES)],
        "throttled far below it": [used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES)],
        "throttled in another window": [
            used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES),
            used(11, BYTES, 1_100.0),
        ],
        "a quota of time that throttled requests of bytes": [
            used(0, BYTES, 900.0, **OF_NONE, throttled_by=TIME, **THROTTLES),
            used(0, TIME, 1.0),
        ],
    },
    ("unknown",): {
        "bytes of share consumers are in no line": [used(0, "consumer_byte_rate", 0.0, **SHARED)]
    },
}


def test_a_bucket_is_in_one_state() -> None:
    buckets = assert_outcomes(in_table("quota_usage", STATES), "quota_headroom", "state")
    for (bucket,) in buckets.values():
        assert (bucket["windows_throttled"] > 0) == (bucket["state"] == "throttled")


# The greatest usage of a quota of 1,000, whether it is a lower bound, and the headroom.
PEAKS: dict[tuple[float, bool, float], dict[str, list[Row]]] = {
    (1_000.0, True, 0.0): {
        "brokers measure between two windows too": [
            used(0, BYTES, 893.0),
            used(11, BYTES, 666.0, throttled_by=BYTES, **THROTTLES),
        ],
        "a quota of time that throttled requests of bytes": [
            used(0, BYTES, 900.0, **OF_NONE, throttled_by=TIME, **THROTTLES),
            used(0, TIME, 1.0),
        ],
    },
    (893.0, False, 107.0): {
        "not throttled": [used(0, BYTES, 893.0)],
        "the quota was lower before": [
            used(0, BYTES, 893.0, throttled_by=BYTES, is_quota_changed=True, **THROTTLES)
        ],
        "a callback throttled": [
            used(0, BYTES, 893.0, throttled_by=BYTES, **THROTTLES) | {"enforcement": "callback"}
        ],
    },
    (1_100.0, False, -100.0): {
        "a window is over the quota": [used(0, BYTES, 1_100.0, throttled_by=BYTES, **THROTTLES)]
    },
}


def test_a_bucket_that_was_throttled_had_no_room() -> None:
    columns = ("peak_usage", "is_lower_bound", "headroom")
    buckets = assert_outcomes(in_table("quota_usage", PEAKS), "quota_headroom", *columns)
    for (bucket,) in buckets.values():
        assert bucket["peak_share"] == bucket["peak_usage"] / 1_000
    for (peak, *_), cases in PEAKS.items():
        content = {
            "quota_usage": next(iter(cases.values())),
            "client_quotas": [ENTITIES["of a user"]],
        }
        (bucket,) = buckets[next(iter(cases))]
        shown = picked(view("quota_uses", content), "peak_usage", "state")
        assert shown == [(peak, bucket["state"])]


def test_a_quota_that_was_raised_since_it_throttled_is_free() -> None:
    throttled = used(0, BYTES, 893.0, throttled_by=BYTES, **THROTTLES)
    raised = ENTITIES["of a user"] | {"quota": 2_000.0}
    content = {"quota_usage": [throttled], "client_quotas": [raised]}
    assert picked(view("quota_uses", content), "peak_share", "state") == [(0.5, "free")]


def test_throttled_time_is_summed_by_the_quota_that_did_it() -> None:
    content = [
        used(0, BYTES, 1.0, throttled_by=BYTES, **THROTTLES),
        used(11, BYTES, 1.0, throttled_by=TIME, **THROTTLES),
        used(22, BYTES, 1.0, broker_id=2, throttled_by=TIME, **THROTTLES),
        used(3_600, BYTES, 1.0, **THROTTLES),
        used(33, BYTES, 1.0),
    ]
    actual = view("throttled_clients ORDER BY hour, throttled_by", {"quota_usage": content})
    names = ("throttled_by", "throttled_requests", "request_count", "throttle_time_ms")
    assert picked(actual, *names, "broker_count") == [
        ("producer_byte_rate", 2, 10, 30.0, 1),
        ("request_percentage", 4, 20, 60.0, 2),
        (None, 2, 10, 30.0, 1),
    ]


def test_throttled_instances_of_a_program_are_one_row() -> None:
    names = ["producer-1", "producer-2", "producer-3", "billing", None]
    content = [
        used(0, BYTES, 1.0, client_id=name, throttled_by=BYTES, **THROTTLES) for name in names
    ]
    actual = view("throttled_clients ORDER BY client_id NULLS LAST", {"quota_usage": content})
    assert picked(actual, "client_id", "client_ids", "throttled_requests") == [
        ("billing", 1, 2),
        ("producer-*", 3, 6),
        (None, 0, 2),
    ]


def limited(quota_level: int, **bucket: str) -> Row:
    """Usage of a bucket of this level."""
    shared = {"quota_bucket_user": None, "quota_bucket_client_id": None} | bucket
    return used(60, BYTES, 900.0, quota_level=quota_level, **shared)


def connected(second: float, port: int, address: str = "10.0.0.1", **others: object) -> Row:
    """A request on a connection of a broker."""
    own = {"connection_id": f"b-{address}:{port}", "client_address": address} | others
    return request(second, "METADATA", **own)


ALICE, APP = {"quota_bucket_user": "alice"}, {"quota_bucket_client_id": "app"}
OF_IP = "connection_creation_rate"
ALL_USED: Tables = {
    "quota_usage": [
        *(limited(1, **ALICE, **APP), limited(2, **ALICE, **APP), limited(3, **ALICE)),
        *(limited(4, **ALICE, **APP), limited(5, **ALICE, **APP), limited(6, **ALICE)),
        *(limited(7, **APP), limited(8, **APP)),
    ],
    "requests": [connected(60, port, address) for port in range(10) for address in "ab"],
}
NOBODY: Tables = {"quota_usage": [used(0, "request_percentage", 1.0, quota_level=None)]}
OF_APP, OF_CLIENTS = {"client_id": "app"}, {"is_default_client_id": True}
OF_ALICE, OF_USERS = {"user": "alice"}, {"is_default_user": True}
ENTITIES: dict[str, Row] = {
    "of a user and client id": quota(0, BYTES, 1_000.0, **OF_ALICE, **OF_APP),
    "of each client id of a user": quota(0, BYTES, 1_000.0, **OF_ALICE, **OF_CLIENTS),
    "of a user": quota(0, BYTES, 1_000.0, **OF_ALICE),
    "of a client id of each user": quota(0, BYTES, 1_000.0, **OF_USERS, **OF_APP),
    "of each client id of each user": quota(0, BYTES, 1_000.0, **OF_USERS, **OF_CLIENTS),
    "of each user": quota(0, BYTES, 1_000.0, **OF_USERS),
    "of a client id": quota(0, BYTES, 1_000.0, **OF_APP),
    "of each client id": quota(0, BYTES, 1_000.0, **OF_CLIENTS),
    "of an address": quota(0, OF_IP, 1.0, ip="a"),
    "of each address": quota(0, OF_IP, 1.0, is_default_ip=True),
}


def test_a_quota_is_used_by_its_own_entity_alone() -> None:
    every = [*ENTITIES.values()]
    for n, (case, row) in enumerate(ENTITIES.items()):
        others = [each for m, each in enumerate(ALL_USED["quota_usage"]) if m != n]
        elsewhere = ALL_USED | {"quota_usage": others}
        elsewhere["requests"] = [connected(60, 1, "c")] if row.get("ip") else []
        shown = [
            view("quota_uses", content | {"client_quotas": [row]})[0]["state"]
            for content in (ALL_USED, elsewhere, NOBODY, {})
        ]
        assert shown == ["near", "unused", "unused", "unknown"], case
    both = view("quota_uses ORDER BY config_key", ALL_USED | {"client_quotas": every})
    assert {row["state"] for row in both} == {"near"}
    assert {row["last_used"] for row in both} == {at(60)}


def test_who_opens_most_connections_of_an_address_is_named() -> None:
    content = [
        *(connected(60 + n, n) | {"principal": "User:often", "client_id": "a"} for n in range(2)),
        connected(60, 2) | {"principal": "User:once", "client_id": "b"},
        connected(60, 3) | {"principal": "User:once", "client_id": "c"},
        # A client that waits for its login has a name from its second request on.
        connected(60, 4) | {"principal": None, "client_id": None},
    ]
    actual = view("connection_rates", {"requests": content})
    names = ("busiest_principal", "busiest_client_id", "busiest_connections", "new_connections")
    assert picked(actual, *names) == [("User:often", "a", 2, 5)]


def test_connections_are_counted_once_in_the_minute_of_their_first_request() -> None:
    content = [
        *(connected(60, 1), connected(61, 1), connected(200, 1)),
        *(connected(62, 2), connected(100, 3), connected(60, 1, broker_id=2)),
        *(connected(60, 9, "10.0.0.2"), request(60, "METADATA", client_address="10.0.0.3")),
    ]
    actual = view("connection_rates ORDER BY client_address, broker_id", {"requests": content})
    names = ("client_address", "broker_id", "minute", "new_connections", "new_connections_per_s")
    assert picked(actual, *names, "peak_per_s") == [
        ("10.0.0.1", 1, at(60), 3, 3 / 60, 2 / 11),
        ("10.0.0.1", 2, at(60), 1, 1 / 60, 1 / 11),
        ("10.0.0.2", 1, at(60), 1, 1 / 60, 1 / 11),
    ]
