"""Who reads from remote storage, at what cost, and what would spare it."""

from typing import Any

from ...cases import cases
from ...rows import Row, broker_config, config, moved, read_remotely, row, setting
from .group_rows import member
from .group_snapshot_rows import ended, snapshots
from .view_tables import Picked, Tables, assert_outcomes, assert_shown, in_table, picked, view

WAITED = {"empty_fetches": 4, "empty_time_ms": 2_000.0, "fetch_quota": 1_000}
HOUR_MS = 3_600_000
CLIENT = {"principal": "User:alice", "client_id": "orders", "group_id": "g"}


def of_client(second: float, **others: Any) -> Row:
    """A minute of a member of group g that is the reader."""
    return member(second, "m1") | CLIENT | others


OTHER = {"subscribed_topics": ["other"]}
GROUPS: dict[tuple[str | None, int], dict[str, list[Row]]] = {
    (None, 0): {
        "none": [],
        "a group by another topic": [of_client(5, **OTHER)],
        "another hour": [of_client(4_000)],
        "another principal": [of_client(5, principal="User:eve")],
    },
    ("g", 1): {
        "its group": [of_client(5)],
        "no request names topics": [of_client(5, subscribed_topics=None)],
        "two, and one by another topic": [of_client(5), of_client(5, group_id="h", **OTHER)],
    },
    (None, 2): {"two groups": [of_client(5), of_client(65, group_id="h")]},
}


def test_the_group_of_a_reader() -> None:
    outcomes = in_table("group_members", GROUPS, remote_reads=[read_remotely(5, 10)])
    assert_outcomes(outcomes, "remote_reads_by_hour", "group_id", "groups")


@cases(
    ("minutes", "limiter"),
    ("nothing was empty", [read_remotely(5, 10)], None),
    ("half", [read_remotely(5, 10, **WAITED, over_quota_fetches=2)], "remote_fetch_quota"),
    ("few", [read_remotely(5, 10, **WAITED, over_quota_fetches=1)], "remote_storage"),
)
def test_what_limits_reads_and_what_they_cost(minutes: list[Row], limiter: str | None) -> None:
    prices = [setting("prices.currency", "EUR"), setting("prices.remote_read_per_gib", 2**30 / 5)]
    tables = {"remote_reads": minutes}
    cases: dict[str, tuple[Tables, Picked]] = {
        "with prices": (tables | {"settings": prices}, [(limiter, 2.0, "EUR")]),
        "without": (tables, [(limiter, None, None)]),
    }
    assert_shown(cases, "remote_reads_by_hour", "limiter", "remote_read_cost", "currency")


def topic_config(key: str, value: str) -> Row:
    return config(0, key, value, entity_type="topic", entity_name="orders")


# The end was at offset 50 at 10 s: what lies there is read in the minute that ends at 7200 s.
ENDS = [ended(second, offset, topic="orders") for second, offset in ((10, 50), (70, 100))]
LATE_READ = read_remotely(7_140, 3_600)
AGED = {
    "remote_reads": [LATE_READ],
    "partition_offsets": ENDS,
    "pipeline_progress": snapshots(10, 70, 7_300),
    "traffic": [moved(7_140, 600, topic="orders")],
    "replicas": [row("replicas", 0, {}, topic="orders", broker_id=n) for n in (1, 2)],
    "topics": [row("topics", 0, {}, topic="orders")],
}


def test_what_keeps_records_on_disk_until_they_are_read() -> None:
    configs = [topic_config("local.retention.ms", str(HOUR_MS))]
    prices = [setting("prices.currency", "EUR"), setting("prices.remote_read_per_gib", 2**30)]
    content = AGED | {"configs": configs, "settings": prices}
    rows = view("remote_read_advice ORDER BY advice", content)
    columns = ("advice", "client_id", "topic", "read_age_ms", "local_retention_ms")
    assert picked(rows, *columns, "recommended_ms", "extra_local_bytes") == [
        # A minute of 600 bytes is 36 kB an hour, for an hour more and two replicas.
        ("raise_local_retention", None, "orders", 7_190_000, HOUR_MS, 2 * HOUR_MS, 72_000.0),
        ("read_sooner", "orders", "orders", 7_190_000, HOUR_MS, None, None),
    ]
    assert picked(rows, "bytes_per_hour", "saved_cost_per_hour") == [(216_000.0, 216_000.0)] * 2


def test_a_rate_is_of_the_last_day_and_not_of_the_minutes_of_the_reads() -> None:
    content = AGED | {"remote_reads": [LATE_READ, read_remotely(7_200, 3_600)]}
    content["traffic"] = [moved(second, 600, topic="orders") for second in (7_140, 7_140 + 7_140)]
    rows = view("remote_read_advice", content)
    assert picked(rows, "bytes", "bytes_per_hour", "lasted_ms") == [(7_200, 3_600.0, 120_000)] * 2


def test_reads_of_more_than_a_day_ago_ask_for_nothing() -> None:
    content = AGED | {"traffic": [moved(7_140 + 86_400, 600, topic="orders")]}
    assert view("remote_read_advice", content) == []


OF_BROKER = broker_config("log.local.retention.ms", "7")
RETENTIONS: dict[tuple[int | None], dict[str, list[Row]]] = {
    (None,): {"no snapshot": [], "no number": [topic_config("local.retention.ms", "x")]},
    (7,): {"of the broker": [OF_BROKER]},
    (8,): {"of the topic": [OF_BROKER, topic_config("local.retention.ms", "8")]},
    (9,): {
        "that of the whole log": [
            topic_config("local.retention.ms", "-2"),
            topic_config("retention.ms", "9"),
        ]
    },
    (2 * HOUR_MS,): {
        "that of the broker's whole log, in hours": [
            broker_config("log.local.retention.ms", "-2"),
            broker_config("log.retention.hours", "2"),
        ],
        "of minutes and hours the minutes": [
            broker_config("log.local.retention.ms", "-2"),
            broker_config("log.retention.minutes", "120"),
            broker_config("log.retention.hours", "3"),
        ],
    },
}


def test_local_retention_of_a_topic() -> None:
    outcomes = in_table("configs", RETENTIONS, **AGED)
    sooner = "remote_read_advice WHERE advice = 'read_sooner'"
    assert_outcomes(outcomes, sooner, "local_retention_ms")


def test_an_age_that_no_known_end_shows() -> None:
    older = AGED | {"remote_reads": [LATE_READ | {"min_fetch_offset": 49}]}
    rows = view("remote_read_advice ORDER BY advice", older)
    names = ("read_age_ms", "recommended_ms", "extra_local_bytes", "unknown_reason")
    assert picked(rows, *names) == [(None, None, None, "older_than_ends")] * 2


OVER_QUOTA = read_remotely(5, 10, **WAITED, over_quota_fetches=1)
QUOTAS: dict[tuple[Any, ...], dict[str, list[Row]]] = {
    (1_000, None, 2_000.0): {"clients waited for it": [OVER_QUOTA]},
    (): {"clients waited for something else": [read_remotely(5, 10, **WAITED)]},
    (None, "several_quotas", 4_000.0): {
        "it was altered": [
            OVER_QUOTA,
            read_remotely(65, 10, **WAITED | {"fetch_quota": 2_000}, over_quota_fetches=1),
        ]
    },
}


def test_a_quota_of_remote_reads() -> None:
    raises = "remote_read_advice WHERE advice = 'raise_remote_fetch_quota'"
    names = ("fetch_quota", "unknown_reason", "empty_time_ms")
    assert_outcomes(in_table("remote_reads", QUOTAS), raises, *names)


def test_own_reads_ask_for_nothing() -> None:
    own = AGED | {"settings": [setting("excluded.User:alice", "own")]}
    assert view("remote_read_advice", own) == []
