"""How far groups are behind, by snapshots alone and with the answers to fetches."""

from typing import Any

import pytest

from ...rows import Row, at, row
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
from .view_tables import Picked, Tables, assert_shown, picked, view


def scene(
    *rows: Row,
    at_seconds: tuple[float, ...] = (0, 600),
    fetches: tuple[Row, ...] = (),
    **others: Any,
) -> Tables:
    return others | {
        "group_offsets": [row for row in rows if "committed_offset" in row],
        "group_commits": [row for row in rows if "last_commit_time" in row],
        "partition_offsets": [row for row in rows if "log_end_offset" in row],
        "group_assignments": [row for row in rows if "assigned_partitions" in row],
        "replica_offsets": list(fetches),
        "pipeline_progress": snapshots(*at_seconds),
    }


LAGS: dict[str, tuple[Tables, Picked]] = {
    "at rest, and all read": (
        scene(committed(0, 100), ended(0, 100)),
        [(100, 0, None, 0.0, None, "caught_up")],
    ),
    "at rest, and not all read: nobody saw when it was written": (
        scene(committed(0, 60), ended(0, 100)),
        [(100, 40, None, None, "older_than_history", "steady")],
    ),
    # The first record left is 30 % into the records that came from second 600 to second 1200.
    "it falls behind": (
        scene(
            *(committed(0, 100), committed(600, 130)),
            *(ended(0, 100), ended(600, 100), ended(1_200, 200)),
            at_seconds=(0, 600, 1_200),
        ),
        [(200, 70, None, 420.0, None, "growing")],
    ),
    "records that came after a long rest are as old as the last snapshot says": (
        scene(
            *(committed(0, 100), ended(0, 100), ended(3_000, 200)),
            at_seconds=(0, 600, 1_200, 1_800, 2_400, 3_000),
        ),
        [(200, 100, None, 600.0, None, "growing")],
    ),
    "it catches up": (
        scene(*(committed(0, 0), committed(600, 600)), *(ended(0, 1_000), ended(600, 1_200))),
        [(1_200, 600, None, None, "older_than_history", "shrinking")],
    ),
    "fetches show an end after the last snapshot": (
        scene(committed(0, 100), ended(0, 100), at_seconds=(0,), fetches=(fetched(1, 160),)),
        [(160, 60, None, 120.0, None, "unknown")],
    ),
    "a snapshot within a minute of fetches may see more": (
        scene(
            *(committed(0, 100), committed(90, 100), ended(0, 100), ended(90, 170)),
            at_seconds=(0, 90),
            fetches=(fetched(1, 160),),
        ),
        [(170, 70, None, 120.0, None, "growing")],
    ),
    "the clock of the coordinator before is 90 s ahead": (
        scene(
            *(ended(0, 0), ended(700, 140)),
            logged_commit(690, 100, coordinator_id=1),
            logged_commit(610, 120, coordinator_id=2),
            logged_commit(650, 140, coordinator_id=2),
            at_seconds=(0, 700),
        ),
        [(140, 0, None, 0.0, None, "caught_up")],
    ),
    "and it is the clock of the coordinator that follows": (
        scene(
            *(ended(0, 0), ended(700, 140)),
            logged_commit(610, 120, coordinator_id=1),
            logged_commit(600, 140, coordinator_id=2),
            at_seconds=(0, 700),
        ),
        [(140, 0, None, 0.0, None, "caught_up")],
    ),
    "and the clock of the leader before is 90 s ahead": (
        scene(
            *(committed(0, 100), ended(0, 100)),
            at_seconds=(0,),
            fetches=(fetched(3, 120), fetched(2, 160, broker_id=2)),
        ),
        [(160, 60, None, 240.0, None, "unknown")],
    ),
    "a later generation goes back": (
        scene(
            *(ended(0, 0), ended(700, 140)),
            logged_commit(690, 140, coordinator_id=1, group_epoch=3, member_id="a"),
            logged_commit(650, 100, coordinator_id=2, group_epoch=4, member_id="b"),
            at_seconds=(0, 700),
        ),
        [(140, 40, None, 200.0, None, "unknown")],
    ),
    "a commit before a snapshot, by a clock ahead": (
        scene(
            *(committed(600, 140), ended(0, 0), ended(600, 140)),
            logged_commit(650, 100, coordinator_id=1, member_id="a"),
            at_seconds=(0, 600),
        ),
        [(140, 0, None, 0.0, None, "caught_up")],
    ),
    "who is no member resets the group after a snapshot": (
        scene(
            *(committed(600, 140), ended(0, 0), ended(600, 140)),
            logged_commit(650, 100, coordinator_id=1),
            at_seconds=(0, 600),
        ),
        [(140, 40, None, 171.42857142857142, None, "went_back")],
    ),
    "one coordinator goes back": (
        scene(
            *(ended(0, 0), ended(700, 140)),
            logged_commit(600, 140, coordinator_id=1, member_id="a"),
            logged_commit(690, 100, coordinator_id=1, member_id="a"),
            at_seconds=(0, 700),
        ),
        [(140, 40, None, 200.0, None, "went_back")],
    ),
    "an offset that the partition does not have": (
        scene(committed(0, 101), ended(0, 100)),
        [(100, None, "beyond_end", None, "lag_unknown", "unknown")],
    ),
    "a request log shows a commit after the last snapshot": (
        scene(
            *(committed(0, 100), logged_commit(70, 150), ended(0, 100)),
            at_seconds=(0,),
            fetches=(fetched(1, 160),),
        ),
        # The first record left is 50/60 into the 120 seconds in which 60 records came.
        [(160, 10, None, 20.0, None, "shrinking")],
    ),
    "a commit after the last time at which the end is known": (
        scene(committed(0, 100), logged_commit(70, 150), ended(0, 100), at_seconds=(0,)),
        [(100, None, "end_outdated", None, "lag_unknown", "unknown")],
    ),
    # An end by fetches is of any time within its minute.
    "a commit after the last fetch of its minute": (
        scene(
            *(committed(0, 100), logged_commit(70, 170), ended(0, 100)),
            at_seconds=(0,),
            fetches=(fetched(1, 160),),
        ),
        [(160, None, "end_outdated", None, "lag_unknown", "unknown")],
    ),
    "a commit past the end, a minute before the fetches that show it": (
        scene(
            *(committed(0, 100), logged_commit(50, 170), ended(0, 100)),
            at_seconds=(0,),
            fetches=(fetched(1, 160),),
        ),
        [(160, None, "beyond_end", None, "lag_unknown", "unknown")],
    ),
    "a commit after the offset was deleted": (
        scene(
            *(committed(0, 10), committed(600, None, is_removed=True), logged_commit(700, 20)),
            *(ended(0, 100), ended(720, 100)),
            at_seconds=(0, 600, 720),
        ),
        [(100, 80, None, None, "older_than_history", "unknown")],
    ),
    "the end is not known": (
        scene(committed(0, 10)),
        [(None, None, "end_unknown", None, "lag_unknown", "unknown")],
    ),
    "the topic was made again": (
        scene(*(committed(0, 900), committed(600, 5)), *(ended(0, 1_000), ended(600, 10))),
        [(10, 5, None, None, "older_than_history", "went_back")],
    ),
    "the offset was deleted": (
        scene(committed(0, 10), committed(600, None, is_removed=True), ended(0, 100)),
        [],
    ),
    "a share group has the lag that its coordinator says": (
        scene(
            committed(0, None, group_type="share", start_offset=10, reported_lag=7), ended(0, 100)
        ),
        [(100, 7, None, None, "share_group", "steady")],
    ),
    "a share group whose broker says no lag": (
        scene(
            committed(0, None, group_type="share", start_offset=10, reported_lag=None),
            ended(0, 100),
        ),
        [(100, None, "not_reported", None, "lag_unknown", "unknown")],
    ),
}
READS = tuple(committed(second, 200) for second in (0, 600))
GROWS = tuple(ended(second, end) for second, end in ((0, 300), (600, 900)))
READABLE: dict[str, tuple[Tables, Picked]] = {
    "records were deleted before it read them, and nothing came since": (
        scene(committed(0, 1_000), ended(0, 5_000, log_start_offset=5_000)),
        [(0, None, 0, 4_000, "caught_up")],
    ),
    "records were deleted before it read them, and more came": (
        scene(committed(0, 1_000), ended(0, 5_000, log_start_offset=4_900)),
        [(100, None, 0, 3_900, "steady")],
    ),
    "it reads all up to an open transaction": (
        scene(*READS, *GROWS, active_producers=[producer(start=200)]),
        [(0, None, 700, 0, "blocked")],
    ),
    "the broker says up to where records are stable": (
        scene(*READS, ended(0, 900, last_stable_offset=200)),
        [(0, None, 700, 0, "blocked")],
    ),
    "the transaction ended between the two answers of the snapshot": (
        scene(
            *READS,
            *(ended(0, 300), ended(600, 900, last_stable_offset=900)),
            active_producers=[producer(start=200)],
        ),
        [(700, None, 0, 0, "growing")],
    ),
    "it reads all up to the marker before an open transaction": (
        scene(*READS, *GROWS, active_producers=[producer(start=201)]),
        [(0, None, 699, 0, "blocked")],
    ),
    "it reads all up to the record before an open transaction": (
        scene(*READS, *GROWS, active_producers=[producer(start=201, coordinator_epoch=None)]),
        [(700, None, 0, 0, "growing")],
    ),
    "it reads past an open transaction": (
        scene(committed(0, 500), *GROWS, active_producers=[producer(start=200)]),
        [(400, None, 0, 0, "growing")],
    ),
    "it reads committed records, and lags behind an open transaction": (
        scene(
            committed(0, 100),
            logged_commit(10, 100),
            *GROWS,
            active_producers=[producer(start=200)],
            fetch_sizes=[sized(fetches=9, committed_fetches=9)],
        ),
        [(100, None, 700, 0, "growing")],
    ),
    "it reads uncommitted records, and rests where a transaction is open": (
        scene(
            *(*READS, logged_commit(10, 200), *GROWS),
            active_producers=[producer(start=200)],
            fetch_sizes=[sized(fetches=9, committed_fetches=0)],
        ),
        [(700, None, 0, 0, "growing")],
    ),
    "a transaction that a later snapshot saw no more": (
        scene(
            *(*READS, *GROWS),
            active_producers=[producer(start=200), producer(600, is_removed=True)],
        ),
        [(700, None, 0, 0, "growing")],
    ),
    "the last offset is the marker of a transaction": (
        scene(committed(0, 100), ended(0, 101), active_producers=[producer()]),
        [(0, None, 0, 0, "caught_up")],
    ),
    "the last offset may be a record of who writes without transactions": (
        scene(
            *(committed(0, 100), ended(0, 101)),
            active_producers=[producer(), producer(producer_id=8, coordinator_epoch=None)],
        ),
        [(None, "control_records", 0, 0, "unknown")],
    ),
    "the last two offsets may be the markers of two transactions": (
        scene(
            *(committed(0, 100), ended(0, 102)),
            active_producers=[producer(), producer(producer_id=8)],
        ),
        [(None, "control_records", 0, 0, "unknown")],
    ),
    "a transaction that ended has records before its marker": (
        scene(committed(0, 100), ended(0, 102), active_producers=[producer()]),
        [(2, None, 0, 0, "steady")],
    ),
    "a marker from before the group was there": (
        scene(
            *(committed(0, 100), ended(0, 100), ended(600, 101)),
            active_producers=[producer(last_timestamp=at(-60))],
        ),
        [(1, None, 0, 0, "growing")],
    ),
    "an end that is newer than the snapshot of producers": (
        scene(
            *(committed(0, 100), ended(0, 100)),
            at_seconds=(0,),
            fetches=(fetched(1, 101),),
            active_producers=[producer()],
        ),
        [(1, None, 0, 0, "unknown")],
    ),
    "assigned, and never committed": (
        scene(assigned("m", 0), ended(0, 100, log_start_offset=0)),
        [(None, "never_committed", 0, None, "unknown")],
    ),
    "assigned a moment ago": (scene(assigned("m", 0, second=590), ended(0, 100)), []),
    "a share group starts to read with its first fetch": (
        scene(assigned("m", 0), ended(0, 100), groups=[group(0, group_type="share")]),
        [],
    ),
}
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
    plain = scene(committed(0, 60), ended(0, 100))
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
