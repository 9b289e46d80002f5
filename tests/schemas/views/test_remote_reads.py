"""Who reads from remote storage, at what cost, and what would spare it."""

from typing import Any

from ...cases import cases
from ...rows import Row, at, config, moved, read_remotely, setting
from .group_rows import member
from .group_snapshot_rows import ended, snapshots
from .view_tables import by_case, picked

WAITED = {"empty_fetches": 4, "empty_time_ms": 2_000.0, "fetch_quota": 1_000}
HOUR_MS = 3_600_000
CLIENT = {"principal": "User:alice", "client_id": "orders", "group_id": "g"}


def of_client(second: float, **others: Any) -> Row:
    """A minute of a member of group g that is the reader."""
    return member(second, "m1") | CLIENT | others


GROUPS: dict[str, tuple[list[Row], tuple[str | None, int]]] = {
    "none": ([], (None, 0)),
    "its group": ([of_client(5)], ("g", 1)),
    "a group by another topic": ([of_client(5, subscribed_topics=["other"])], (None, 0)),
    "no request names topics": ([of_client(5, subscribed_topics=None)], ("g", 1)),
    "two groups": ([of_client(5), of_client(65, group_id="h")], (None, 2)),
    "two, and one by another topic": (
        [of_client(5), of_client(5, group_id="h", subscribed_topics=["other"])],
        ("g", 1),
    ),
    "another hour": ([of_client(4_000)], (None, 0)),
    "another principal": ([of_client(5, principal="User:eve")], (None, 0)),
}


def test_the_group_of_a_reader() -> None:
    cases = {
        case: {"remote_reads": [read_remotely(5, 10)], "group_members": members}
        for case, (members, _) in GROUPS.items()
    }
    actual = by_case(cases, "SELECT * FROM remote_reads_by_hour")
    assert {case: picked(rows, "group_id", "groups") for case, rows in actual.items()} == {
        case: [expected] for case, (_, expected) in GROUPS.items()
    }


@cases(
    ("minutes", "limiter"),
    ("nothing was empty", [read_remotely(5, 10)], None),
    ("half", [read_remotely(5, 10, **WAITED, over_quota_fetches=2)], "remote_fetch_quota"),
    ("few", [read_remotely(5, 10, **WAITED, over_quota_fetches=1)], "remote_storage"),
)
def test_what_limits_reads_and_what_they_cost(minutes: list[Row], limiter: str | None) -> None:
    prices = [setting("prices.currency", "EUR"), setting("prices.remote_read_per_gib", 2**30 / 5)]
    cases = {"c": {"remote_reads": minutes, "settings": prices}, "free": {"remote_reads": minutes}}
    actual = by_case(cases, "SELECT * FROM remote_reads_by_hour")
    assert picked(actual["c"], "limiter", "remote_read_cost", "currency") == [(limiter, 2.0, "EUR")]
    assert picked(actual["free"], "remote_read_cost", "currency") == [(None, None)]


def topic_config(key: str, value: str) -> Row:
    return config(0, key, value, entity_type="topic", entity_name="orders")


def broker_config(key: str, value: str) -> Row:
    return config(0, key, value, entity_type="broker", entity_name="1")


# The end was at offset 50 at 10 s: what lies there is read in the minute that ends at 7200 s.
ENDS = [ended(second, offset, topic="orders") for second, offset in ((10, 50), (70, 100))]
LATE_READ = read_remotely(7_140, 3_600)
AGED = {
    "remote_reads": [LATE_READ],
    "partition_offsets": ENDS,
    "pipeline_progress": snapshots(10, 70, 7_300),
    "traffic": [moved(7_140, 600, topic="orders")],
    "replicas": [
        {"cluster_id": "c", "event_time": at(0), "topic": "orders", "topic_id": "t1"}
        | {"partition": 0, "broker_id": n, "is_removed": False}
        for n in (1, 2)
    ],
}


def test_what_keeps_records_on_disk_until_they_are_read() -> None:
    configs = [topic_config("local.retention.ms", str(HOUR_MS))]
    prices = [setting("prices.currency", "EUR"), setting("prices.remote_read_per_gib", 2**30)]
    cases = {"c": AGED | {"configs": configs, "settings": prices}}
    rows = by_case(cases, "SELECT * FROM remote_read_advice ORDER BY advice")["c"]
    columns = ("advice", "client_id", "topic", "read_age_ms", "local_retention_ms")
    assert picked(rows, *columns, "recommended_ms", "extra_local_bytes") == [
        # A minute of 600 bytes is 36 kB an hour, for an hour more and two replicas.
        ("raise_local_retention", None, "orders", 7_190_000, HOUR_MS, 2 * HOUR_MS, 72_000.0),
        ("read_sooner", "orders", "orders", 7_190_000, HOUR_MS, None, None),
    ]
    assert {row["bytes_per_hour"] for row in rows} == {216_000.0}
    assert {row["saved_cost_per_hour"] for row in rows} == {216_000.0}


RETENTIONS: dict[str, tuple[list[Row], int | None]] = {
    "no snapshot": ([], None),
    "of the broker": ([broker_config("log.local.retention.ms", "7")], 7),
    "of the topic": (
        [broker_config("log.local.retention.ms", "7"), topic_config("local.retention.ms", "8")],
        8,
    ),
    "that of the whole log": (
        [topic_config("local.retention.ms", "-2"), topic_config("retention.ms", "9")],
        9,
    ),
    "that of the broker's whole log, in hours": (
        [broker_config("log.local.retention.ms", "-2"), broker_config("log.retention.hours", "2")],
        2 * HOUR_MS,
    ),
    "no number": ([topic_config("local.retention.ms", "x")], None),
}


def test_local_retention_of_a_topic() -> None:
    cases = {case: AGED | {"configs": configs} for case, (configs, _) in RETENTIONS.items()}
    query = "SELECT * FROM remote_read_advice WHERE advice = 'read_sooner'"
    actual = by_case(cases, query)
    assert {case: picked(rows, "local_retention_ms") for case, rows in actual.items()} == {
        case: [(expected,)] for case, (_, expected) in RETENTIONS.items()
    }


def test_an_age_that_no_known_end_shows() -> None:
    older = AGED | {"remote_reads": [LATE_READ | {"min_fetch_offset": 49}]}
    rows = by_case({"c": older}, "SELECT * FROM remote_read_advice ORDER BY advice")["c"]
    assert (
        picked(rows, "read_age_ms", "recommended_ms", "extra_local_bytes", "unknown_reason")
        == [(None, None, None, "older_than_ends")] * 2
    )


QUOTAS: dict[str, tuple[list[Row], list[tuple[int | None, str | None, float]]]] = {
    "clients waited for it": (
        [read_remotely(5, 10, **WAITED, over_quota_fetches=1)],
        [(1_000, None, 120_000.0)],
    ),
    "clients waited for something else": ([read_remotely(5, 10, **WAITED)], []),
    "it was altered": (
        [
            read_remotely(5, 10, **WAITED, over_quota_fetches=1),
            read_remotely(65, 10, **WAITED | {"fetch_quota": 2_000}, over_quota_fetches=1),
        ],
        [(None, "several_quotas", 120_000.0)],
    ),
}


def test_a_quota_of_remote_reads() -> None:
    cases = {case: {"remote_reads": minutes} for case, (minutes, _) in QUOTAS.items()}
    query = "SELECT * FROM remote_read_advice WHERE advice = 'raise_remote_fetch_quota'"
    columns = ("fetch_quota", "unknown_reason", "empty_time_ms_per_hour")
    assert {case: picked(rows, *columns) for case, rows in by_case(cases, query).items()} == {
        case: expected for case, (_, expected) in QUOTAS.items()
    }


def test_own_reads_ask_for_nothing() -> None:
    own = AGED | {"settings": [setting("excluded.User:alice", "own")]}
    assert by_case({"c": own}, "SELECT * FROM remote_read_advice")["c"] == []
