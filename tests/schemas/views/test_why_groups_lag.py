"""Why groups lag: what the text finds of a group in other tables, and which groups lag at all."""

from typing import Any

from quotaflow.pipelines import reasons

from ...rows import Row, at, moved, request, row
from .group_snapshot_rows import (
    assigned,
    committed,
    ended,
    group,
    logged_commit,
    producer,
    snapshots,
)
from .view_tables import Tables, assert_outcomes, view

CLIENT: Row = {"cluster_id": "c1", "principal": "User:alice", "client_id": "orders"}
TIMES = (0, 600, 1_200)


def scene(
    offsets: tuple[int, ...] = (0, 500, 900),
    ends: tuple[int, ...] = (0, 1_000, 2_000),
    **others: Any,
) -> Any:
    """A group with offsets at three snapshots, and a member that a request log shows."""
    tables = {
        "group_offsets": [committed(*each) for each in zip(TIMES, offsets, strict=True)],
        "partition_offsets": [ended(*each) for each in zip(TIMES, ends, strict=True)],
        "groups": [group(0)],
        "group_assignments": [assigned("m", 0)],
        "group_members": [member(1_140)],
        "pipeline_progress": snapshots(*TIMES),
    }
    return tables | others


def member(second: float, **others: Any) -> Row:
    counts = {"heartbeats": 20, "commits": 12}
    return CLIENT | {"event_time": at(second), "group_id": "g", "member_id": "m"} | counts | others


def acquired(second: float, records: int) -> Row:
    row = {"event_time": at(second), "group_id": "g", "member_id": "m", "topic": "t"}
    return CLIENT | row | {"partition": 0, "broker_id": 1, "acquired_records": records}


def share_scene(*fetches: Row, read_too: bool = False) -> Any:
    """A share group with a member whose fetches a request log shows, and a lag."""
    of_group = {"group_type": "share"}
    offsets = [
        committed(second, None, **of_group, start_offset=0, reported_lag=lag)
        for second, lag in zip(TIMES, (0, 1_000, 2_000), strict=True)
    ]
    ends = [ended(*each) for each in zip(TIMES, (0, 1_000, 2_000), strict=True)]
    if read_too:
        all_read = {"partition": 1, "start_offset": 9, "reported_lag": 0}
        offsets.append(committed(0, None, **of_group | all_read))
        ends.append(ended(0, 9, partition=1))
    return scene(
        (0, 0, 0),
        group_offsets=offsets,
        partition_offsets=ends,
        groups=[group(0, **of_group)],
        group_assignments=[assigned("m", 0)],
        group_members=[member(1_140, commits=0, **of_group)],
        requests=[fetch(1_150, api="SHARE_FETCH")],
        share_fetches=list(fetches),
    )


def fetch(second: float, **others: Any) -> Row:
    row = {"event_time": at(second), "broker_id": 1, "api": "FETCH", "local_time_ms": 1.0}
    return request(second, "FETCH") | CLIENT | row | others


def metric(name: str, value: float, **others: Any) -> Row:
    names = {"metric": f"org.apache.kafka.consumer.{name}", "client_instance_id": "i"}
    row = CLIENT | names | {"event_time": at(1_150), "value": value, "accepted": True}
    return row | {"client_software_name": "apache-kafka-java"} | others


def idle(**others: Any) -> Row:
    """What an application says that is busy for 98 % of the time."""
    return metric("poll.idle.ratio.avg", 0.02, **others)


def read(second: float, size: int) -> Row:
    return moved(second, size, **CLIENT | {"direction": "consumed", "topic": "t"})


def four_partitions(stuck: bool = True, **others: Any) -> Any:
    """A member that reads three partitions to their end, and rests in the fourth."""
    offsets, ends = [], []
    for partition in range(4):
        rests = stuck and partition == 3
        for second, end in zip(TIMES, (0, 1_000, 2_000), strict=True):
            at_partition = {"partition": partition}
            offsets.append(committed(second, 500 if rests else end, **at_partition))
            ends.append(ended(second, end + (510 if rests else 0), **at_partition))
    tables = scene(
        group_offsets=offsets,
        partition_offsets=ends,
        group_assignments=[assigned("m", 0, 1, 2, 3)],
        requests=[fetch(1_150)],
        traffic=[read(1_140, 10_000)],
    )
    return tables | others


OPEN = {"ends": (300, 900, 1_663), "offsets": (200, 200, 200)}
STATIC = {"group_instance_id": "node-1", "fenced_answers": 150}
OTHER_TOPIC = {"group_assignments": [assigned("m", 0, topic="other")]}
THROTTLES = [fetch(900 + 5 * n, throttle_time_ms=2_500.0) for n in range(60)]
USAGE = CLIENT | {"event_time": at(1_100), "quota_type": "consumer_byte_rate", "quota": 5e5}
USAGE |= {"throttled_by": "consumer_byte_rate", "throttle_time_ms": 1e5}

CASES: dict[tuple[Any, ...], dict[str, Tables]] = {
    (): {
        "all is read": scene((0, 1_000, 2_000)),
        "it reads what came in the last minute": scene((0, 990, 1_990)),
        "records were deleted before it read them, and none came since": scene(
            (1_000, 1_000, 1_000),
            partition_offsets=[ended(second, 5_000, log_start_offset=5_000) for second in TIMES],
        ),
        "the marker of a transaction is the last offset": scene(
            (0, 100, 100), (0, 101, 101), active_producers=[producer()]
        ),
        "a transaction that a snapshot saw for the first time": scene(
            **OPEN, active_producers=[producer(1_200, start=200)]
        ),
        "each snapshot saw another transaction": scene(
            (290, 890, 1_663),
            (300, 900, 1_700),
            active_producers=[
                producer(second, start=start)
                for second, start in zip(TIMES, (290, 890, 1_663), strict=True)
            ],
        ),
        "a member that never committed reads all the same": scene(
            group_offsets=[], requests=[fetch(1_150)], traffic=[read(1_140, 10_000)]
        ),
        "a member that never committed, and nothing is there": scene(
            ends=(0, 0, 0), group_offsets=[]
        ),
        "a member reads all its partitions": four_partitions(stuck=False),
    },
    (1, "open_transaction", 0.95, "producer id 9"): {
        "a transaction is open in its way": scene(
            **OPEN,
            active_producers=[producer(start=200, coordinator_epoch=3)],
            requests=[fetch(900 + 5 * n, isolation_level=1) for n in range(50)],
        ),
    },
    (1, "open_transaction", 0.95, "pay-1"): {
        "a transaction whose transactional.id a snapshot has": scene(
            **OPEN,
            active_producers=[producer(start=200)],
            transactional_ids=[
                row("transactional_ids", 0, {"producer_id": 9}, transactional_id="pay-1")
            ],
        ),
    },
    (1, "fenced_instance", 0.95, "node-1"): {
        "two hosts run with one group.instance.id": scene(
            (0, 0, 0),
            groups=[group(0, state="Empty", members=0)],
            group_assignments=[],
            group_members=[
                member(1_140, **STATIC, member_id=name, client_address=address, commits=0)
                for name, address in (("m", "10.0.0.1"), ("n", "10.0.0.2"))
            ],
        ),
    },
    (1, "not_subscribed", 0.9, None): {
        "its member has another topic": scene((0, 0, 0), group_members=[], **OTHER_TOPIC),
    },
    (1, "never_committed", 0.9, None): {
        "members, records, and no offset": scene(group_offsets=[], group_members=[]),
        "members, no offset, and the log shows that they read nothing": scene(
            group_offsets=[], requests=[fetch(1_150)]
        ),
    },
    (1, "stuck_partition", 0.9, "3"): {"one of four partitions": four_partitions()},
    (1, "no_members", 0.85, "Stable"): {
        "nobody reads, and nothing says why": scene(
            (0, 0, 0), group_members=[], group_assignments=[]
        )
    },
    (1, "no_members", 0.95, "Empty"): {
        "nobody reads what was written before anybody watched": scene(
            (0, 0, 0),
            ends=(50, 50, 50),
            groups=[group(0, state="Empty", members=0)],
            group_assignments=[],
            group_members=[],
        ),
        "its members read until five minutes ago, and left": scene(
            (0, 500, 800),
            groups=[group(0), group(1_200, state="Empty", members=0)],
            group_assignments=[assigned("m", 0), assigned("m", second=1_200, is_removed=True)],
            group_members=[member(840)],
            group_commits=[logged_commit(890, 800)],
        ),
    },
    (1, "paused", 0.92, None): {
        "its member read until five minutes ago, and polls": scene(
            (0, 500, 800),
            group_members=[member(840), member(1_140, commits=0)],
            group_commits=[logged_commit(890, 800)],
            requests=[fetch(850), fetch(1_150)],
            traffic=[read(840, 10_000)],
            client_metrics=[metric("last.poll.seconds.ago", 0.1)],
        )
    },
    (1, "slow_processing", 0.6, None): {
        # Brokers log no bytes of SHARE_FETCH: records that it acquired show that a member reads.
        "a share group reads": share_scene(acquired(1_140, 500)),
        "a share group of which another partition is all read": share_scene(
            acquired(1_140, 500), read_too=True
        ),
    },
    (1, "not_polling", 0.7, None): {"a share group reads nothing, and heartbeats": share_scene()},
    (1, "unknown", None, None): {
        "no snapshot of groups": scene(
            (0, 0, 0), groups=[], group_assignments=[], group_members=[]
        ),
        "a quota of a client of another principal": scene(
            requests=[row | {"principal": "User:eve"} for row in THROTTLES]
        ),
        "a throttle that was over an hour ago": scene(
            requests=[row | {"event_time": at(-3_600)} for row in THROTTLES]
        ),
        # Java divides by the milliseconds between two polls, and then no longer has a mean.
        "the application polls within milliseconds": scene(
            client_metrics=[idle(event_time=at(700)), metric("poll.idle.ratio.avg", float("nan"))]
        ),
        "of another principal that names the group": scene(
            client_metrics=[idle(principal="User:eve", group_id="g")]
        ),
    },
    (1, "throttled", 0.95, "consumer_byte_rate"): {
        "a quota": scene(requests=THROTTLES, quota_usage=[USAGE]),
        "a quota, of which a Java client says that its fetches take long": scene(
            requests=THROTTLES,
            quota_usage=[USAGE],
            client_metrics=[metric("fetch.manager.fetch.latency.avg", 2_500.0)],
        ),
    },
    (1, "slow_processing", 0.95, None): {
        "the application is busy": scene(client_metrics=[idle()]),
        "answers of brokers wait until a busy application polls again": scene(
            requests=[fetch(900 + 2 * n) for n in range(140)],
            traffic=[read(1_140, 10_000)],
            client_metrics=[
                metric("poll.idle.ratio.avg", 0.05),
                metric("time.between.poll.avg", 500.0),
                metric("fetch.manager.fetch.latency.avg", 400.0),
            ],
        ),
        "without a request log who pushes names its group": scene(
            group_members=[], client_metrics=[idle(group_id="g")]
        ),
    },
    (1, "out_of_range", 0.92, None): {"its offset is past the end": scene((0, 5_000, 5_000))},
    (1, "out_of_range", 0.56, None): {"it went back": scene((0, 990, 10))},
}


def test_causes_by_tables() -> None:
    columns = ("rank", "cause", "confidence", "detail")
    assert_outcomes(CASES, "why_groups_lag ORDER BY rank", *columns)


def test_a_cause_has_its_numbers_and_the_lag() -> None:
    tables = scene(requests=THROTTLES, quota_usage=[USAGE])
    (row,) = view("why_groups_lag", tables)
    assert (row["lag"], row["trend"], row["known_at"]) == (1_100, "growing", at(1_200))
    numbers = {each["signal"]: each["value"] for each in row["evidence"]}
    assert numbers == {"throttle_time_share": 60 * 2.5 / 295, "quota": 5e5}
    for symptom in (*view("diagnoses", tables), *view("incidents", tables)):
        assert symptom["since"] == row["since"]


def test_a_lag_is_since_when_the_oldest_record_left_was_written() -> None:
    tables = scene()
    # The end is known to a time before the last position of the cluster, and one of a partition
    # without a lag to an earlier time.
    tables["group_offsets"] += [
        committed(1_232, 2_000, group_id="h"),
        committed(600, 7, partition=1),
    ]
    tables["partition_offsets"] += [ended(5, 7, partition=1)]
    shown = (*view("diagnoses", tables), *view("incidents", tables))
    assert [each["since"] for each in shown] == [at(540)] * 2
    (row,) = view("why_groups_lag", tables)
    assert (row["known_at"], row["lag_s"], row["since"]) == (at(1_232), 660, at(540))


def test_an_age_that_is_not_known_of_one_partition_is_not_known_of_the_topic() -> None:
    rests = [committed(second, 500, partition=3) for second in TIMES]
    ends = [
        ended(second, end, partition=3)
        for second, end in zip(TIMES, (510, 1_500, 2_500), strict=True)
    ]
    tables = four_partitions(stuck=False)
    for name, rows in (("group_offsets", rests), ("partition_offsets", ends)):
        tables[name] = [each for each in tables[name] if each["partition"] != 3] + rows
    (cause,) = view("why_groups_lag", tables)
    assert (cause["cause"], cause["lag"], cause["lag_s"]) == ("stuck_partition", 2_000, None)
    assert {"signal": "stalled_lag_share", "value": 1.0} in cause["evidence"]


def test_how_to_end_a_transaction() -> None:
    tables = scene(**OPEN, active_producers=[producer(start=200, coordinator_epoch=3)])
    (cause,) = view("why_groups_lag", tables)
    assert (cause["lag"], cause["trend"]) == (0, "blocked")
    numbers = {each["signal"]: each["value"] for each in cause["evidence"]}
    assert numbers == {
        "open_transaction_s": 1_200.0,
        "blocked_records": 1_463.0,
        "producer_id": 9.0,
        "open_partition": 0.0,
        "start_offset": 200.0,
    }
    assert "--topic t --partition 0 --start-offset 200" in reasons.lag_step(cause)


def test_when_a_group_that_reads_faster_is_caught_up() -> None:
    tables = scene((0, 100, 1_500), client_metrics=[idle()])
    (row,) = view("why_groups_lag", tables)
    assert (row["trend"], round(row["caught_up_in_s"])) == ("shrinking", 750)
    assert [each["since"] for each in view("diagnoses", tables)] == [None]
