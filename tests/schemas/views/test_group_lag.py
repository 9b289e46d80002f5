"""How far groups are behind, by snapshots alone and with the answers to fetches."""

from typing import Any

import pytest

from ... import case_tables
from ...rows import Row, broker_config, config, row
from .group_snapshot_rows import (
    assigned,
    committed,
    ended,
    fetched,
    group,
    logged_commit,
    producer,
    sized,
    snapshots,
)
from .view_tables import (
    Picked,
    Tables,
    assert_outcomes,
    assert_shown,
    in_table,
    picked,
    view,
)


def scene(
    *rows: Row,
    at_seconds: tuple[float, ...] = (0, 600),
    offsets_after_s: float = 0,
    fetches: tuple[Row, ...] = (),
    **others: Any,
) -> Tables:
    return others | {
        "group_offsets": [row for row in rows if "committed_offset" in row],
        "group_commits": [row for row in rows if "last_commit_time" in row],
        "partition_offsets": [row for row in rows if "log_end_offset" in row],
        "group_assignments": [row for row in rows if "assigned_partitions" in row],
        "replica_offsets": list(fetches),
        "pipeline_progress": snapshots(*at_seconds, offsets_after_s=offsets_after_s),
    }


LAGS: dict[str, tuple[Tables, Picked]] = case_tables.table(
    __file__, "LAGS", scene, committed, ended, fetched, logged_commit
)
READS = tuple(committed(second, 200) for second in (0, 600))
GROWS = tuple(ended(second, end) for second, end in ((0, 300), (600, 900)))
READABLE: dict[str, tuple[Tables, Picked]] = case_tables.table(
    __file__,
    "READABLE",
    scene,
    committed,
    ended,
    producer,
    sized,
    logged_commit,
    fetched,
    assigned,
    group,
    READS=READS,
    GROWS=GROWS,
)
READABLE_COLUMNS = ("lag", "lag_unknown_reason", "blocked_records", "deleted_records", "trend")


def test_lag_is_what_the_group_can_still_read() -> None:
    assert_shown(READABLE, "group_lag", *READABLE_COLUMNS)


def test_the_lag_of_a_compacted_topic_is_an_upper_bound() -> None:
    policy = row(
        "configs",
        0,
        {"entity_type": "topic", "entity_name": "t", "config_key": "cleanup.policy"},
        config_value="compact",
    )
    plain = scene(committed(0, 60), ended(0, 100), topics=[row("topics", 0, {}, topic="t")])
    cases = {
        "plain": (plain, [(40, False)]),
        "compacted": (plain | {"configs": [policy]}, [(40, True)]),
    }
    assert_shown(cases, "group_lag", "lag", "is_lag_upper_bound")


LAG_COLUMNS = ("end_offset", "lag", "lag_unknown_reason", "lag_s", "lag_s_unknown_reason", "trend")


def test_lag_and_its_age() -> None:
    assert_shown(LAGS, "group_lag", *LAG_COLUMNS)


def test_rates_and_when_it_is_caught_up() -> None:
    tables = scene(*(committed(0, 0), committed(600, 600)), *(ended(0, 1_000), ended(600, 1_200)))
    (rates,) = picked(
        view("group_lag", tables), "records_in_per_s", "records_out_per_s", "caught_up_in_s"
    )
    assert rates == pytest.approx((200 / 600, 1.0, 600 / (1 - 200 / 600)))


# Of a group that has read up to 100, and whose oldest record left is 420 s old.
FALLS_BEHIND = scene(
    *(committed(0, 100), committed(600, 130)),
    *(ended(0, 100), ended(600, 100), ended(1_200, 200)),
    at_seconds=(0, 600, 1_200),
    topics=[row("topics", 0, {}, topic="t")],
)
DAY = broker_config("log.retention.hours", "24")


def of_topic(key: str, value: str) -> Row:
    return config(0, key, value, entity_type="topic", entity_name="t")


RETENTIONS: dict[tuple[float | None], dict[str, list[Row]]] = {
    (86_400 - 420.0,): {
        "of brokers": [DAY],
        "of brokers, in minutes": [
            broker_config("log.retention.hours", "168"),
            broker_config("log.retention.minutes", "1440"),
        ],
        "the policy is known": [DAY, broker_config("log.cleanup.policy", "delete")],
        "compacted, and deleted too": [DAY, of_topic("cleanup.policy", "compact,delete")],
    },
    (180.0,): {"of the topic": [DAY, of_topic("retention.ms", "600000")]},
    (0.0,): {"reached": [of_topic("retention.ms", "420000")]},
    (0.5,): {"reached in half a second": [of_topic("retention.ms", "420500")]},
    (None,): {
        "no snapshot of configs": [],
        "another topic": [of_topic("retention.ms", "600000") | {"entity_name": "u"}],
        "unlimited": [DAY, of_topic("retention.ms", "-1")],
        "unlimited by brokers, in hours": [broker_config("log.retention.hours", "-1")],
        "compacted alone": [DAY, of_topic("cleanup.policy", "compact")],
        "compacted alone by brokers": [DAY, broker_config("log.cleanup.policy", "compact")],
    },
}


def test_when_retention_reaches_the_oldest_record_left() -> None:
    outcomes = in_table("configs", RETENTIONS, **FALLS_BEHIND)
    assert_outcomes(outcomes, "group_lag", "retention_left_s")


def test_retention_takes_nothing_from_a_group_that_has_read_all() -> None:
    read = scene(committed(0, 100), ended(0, 100), topics=FALLS_BEHIND["topics"], configs=[DAY])
    old = scene(committed(0, 60), ended(0, 100), topics=FALLS_BEHIND["topics"], configs=[DAY])
    cases: dict[str, tuple[Tables, Picked]] = {
        "caught up": (read, [(0.0, None)]),
        "the age of the oldest record is not known": (old, [(None, None)]),
    }
    assert_shown(cases, "group_lag", "lag_s", "retention_left_s")


MEMBERS: dict[str, tuple[list[Row], tuple[Any, ...]]] = {
    "nobody": ([], (0, None, None)),
    "one": ([assigned("m", 0, 1)], (1, "m", "client-m")),
    "of another partition": ([assigned("m", 1)], (0, None, None)),
    "two of a share group": ([assigned("m", 0), assigned("n", 0)], (2, None, None)),
    "one that left": (
        [assigned("m", 0), assigned("m", second=600, is_removed=True)],
        (0, None, None),
    ),
    "one that cannot be read": ([assigned("m") | {"assigned_partitions": None}], (0, None, None)),
}


def test_members_of_a_partition() -> None:
    cases = {
        case: (scene(committed(0, 1), ended(0, 1), *members), [expected])
        for case, (members, expected) in MEMBERS.items()
    }
    of_partition = "group_lag WHERE partition = 0"
    assert_shown(cases, of_partition, "members", "member_id", "client_id")
