"""Reads from remote storage: what is below the local start, and which empty answers waited for it.

The sequences of the first two tests are those of a broker of Kafka 4.3.1 with LocalTieredStorage.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.results.declared import result_of
from quotaflow.schemas.tables.declared import FETCH_SESSIONS, REQUESTS
from quotaflow.udfs import fetch_lines
from quotaflow.udfs.fetch_sessions import Limits, follow_sessions

from ....cases import cases
from ....record_batches import parsed
from ....rows import Row, at, minute
from ....rule_rows import database
from .replica_rows import BEFORE, answered, computed, fetch, seen

GOLDEN = Path(__file__).parents[3] / "golden"
LIMITS = Limits(idle_us=3_600_000_000, now_us=2 * 10**15)
RECORD_TIME = datetime(2026, 11, 26, 22, 30, tzinfo=UTC)
LOCAL_START, END = 4_077, 8_000
TOPIC = seen(BEFORE, topic_id="id1", topic="orders")
COUNTS = ("fetches", "bytes", "empty_fetches", "over_quota_fetches")


def starts(second: float = BEFORE, local: int | None = LOCAL_START, **others: Any) -> Row:
    """Offsets of the partition, as a snapshot saw them."""
    row = {"topic": "orders", "partition": 0, "log_start_offset": 0, "log_end_offset": END}
    return seen(second, **row, local_log_start_offset=local) | others


def quota(value: str | None, second: float = BEFORE, **others: Any) -> Row:
    """The remote fetch quota of broker 1."""
    key = "remote.log.manager.fetch.max.bytes.per.second"
    row = seen(second, entity_type="broker", entity_name="1", config_key=key, config_value=value)
    return row | others


def read(second: float, offset: int, size: int, **others: Any) -> Row:
    """A fetch that asks for one offset of the partition."""
    part = answered(size, fetch_offset=offset, high_watermark=END)
    return fetch(second, 1, part, **timed(second, size) | others)


def timed(second: float, size: int) -> Row:
    """What every answer has. An empty one took max_wait_ms."""
    row = {"response_bytes": size, "throttle_time_ms": 0.0, "session_id": 0, "session_epoch": -1}
    row |= {"local_time_ms": 1.0, "remote_time_ms": 2.0 if size else 500.0, "session_partitions": 1}
    return row | {"source_topic": "log", "source_partition": 0, "source_offset": int(second * 1e3)}


def in_session(second: float, epoch: int, offset: int | None = None, size: int = 0) -> Row:
    """A fetch of a session; an empty answer names no partition."""
    session = {"session_id": 7, "session_epoch": epoch}
    if offset is None:
        return fetch(second, 1, **timed(second, 0) | session)
    return read(second, offset, size, **session)


def rows_of(*facts: Row, **lookups: list[Row]) -> list[Row]:
    """The rows of these fetches."""
    given = {"topics": [TOPIC], "partition_offsets": [starts()]} | lookups
    return computed(result_of("remote_reads"), fetches=list(facts), **given)


def counts(row: Row) -> tuple[int, ...]:
    return tuple(row[name] for name in COUNTS)


SESSION = [
    in_session(7.182, 0, 0, 300_000),
    *(in_session(7.710 + 0.505 * n, 1 + n) for n in range(4)),
    in_session(9.234, 5, 286, 300_000),
    *(in_session(9.741 + 0.505 * n, 6 + n) for n in range(4)),
    in_session(11.284, 10, 577, 300_000),
]


def test_a_session_that_waits_for_the_quota() -> None:
    (row,) = rows_of(*SESSION, configs=[quota("150000")])
    assert counts(row) == (3, 900_000, 8, 8)
    assert (row["fetch_time_ms"], row["empty_time_ms"]) == (9.0, 8 * 501.0)
    assert (row["min_fetch_offset"], row["local_log_start_offset"]) == (0, LOCAL_START)
    assert (row["fetch_quota"], row["topic"]) == (150_000, "orders")


def test_without_a_session_an_empty_answer_names_its_offset() -> None:
    facts = [read(1, 0, 100_000), read(1.6, 96, 0), read(1.61, 96, 100_000)]
    (row,) = rows_of(*facts, configs=[quota("50000")])
    assert counts(row) == (2, 200_000, 1, 1)


@cases(
    ("configs", "expected"),
    ("no snapshot has the quota", [], (None, 0)),
    ("Kafka's default is none", [quota("9223372036854775807")], (None, 0)),
    ("the broker is far below it", [quota("1000000")], (1_000_000, 0)),
    ("another broker's", [quota("1000", entity_name="2")], (None, 0)),
    ("it was raised", [quota("150000"), quota("1000000", 5)], (1_000_000, 0)),
)
def test_why_an_answer_is_empty(configs: list[Row], expected: tuple[int | None, int]) -> None:
    (row,) = rows_of(*SESSION, configs=configs)
    assert (row["fetch_quota"], row["over_quota_fetches"]) == expected
    assert row["empty_fetches"] == 8


@cases(
    ("facts", "offsets"),
    ("at the local start", [read(1, LOCAL_START, 9)], [starts()]),
    ("before the first snapshot", [read(1, 5, 9)], [starts(2)]),
    ("all is on disk", [read(1, 5, 9)], [starts(local=0)]),
    ("the broker does not say it", [read(1, 5, 9)], [starts(local=None)]),
    ("removed", [read(1, 5, 9)], [starts(), starts(0, is_removed=True)]),
    ("another partition", [read(1, 5, 9)], [starts(partition=1)]),
    ("a follower", [read(1, 5, 9, replica_id=2)], [starts()]),
    ("refused", [read(1, 5, 0, error_code=41)], [starts()]),
    ("a client quota", [read(1, 5, 0, throttle_time_ms=9.0)], [starts()]),
    (
        "the topic was made again",
        [fetch(1, 1, answered(9, fetch_offset=5, high_watermark=20), **timed(1, 9))],
        [starts()],
    ),
    (
        "out of range",
        [fetch(1, 1, answered(0, fetch_offset=5, error_code=1), **timed(1, 0))],
        [starts()],
    ),
)
def test_what_is_no_remote_read(facts: list[Row], offsets: list[Row]) -> None:
    assert rows_of(*facts, partition_offsets=offsets) == []


@cases(
    ("waiting", "empty"),
    ("it waited", {}, 1),
    ("the partition was left out", {"session_partitions": 0}, 0),
    ("another session", {"session_id": 8}, 0),
    ("a client quota emptied it", {"throttle_time_ms": 3.0}, 0),
    ("a redirect", {"partitions": [answered(0, preferred_read_replica=2)]}, 0),
    ("more than a minute ago", {"event_time": at(-70)}, 0),
)
def test_which_empty_answers_wait(waiting: Row, empty: int) -> None:
    (row,) = rows_of(in_session(1, 1) | waiting, in_session(2, 2, 5, 90))
    assert row["empty_fetches"] == empty


def test_an_answer_with_two_partitions_divides_its_time() -> None:
    two = [answered(4, fetch_offset=1, high_watermark=END, partition=n) for n in (0, 1)]
    one = fetch(60, 1, *two, **timed(60, 8))
    rows = rows_of(one, partition_offsets=[starts(), starts(partition=1)])
    assert [(minute(row), row["fetch_time_ms"], row["bytes"]) for row in rows] == [(1, 1.5, 4)] * 2


def logged_fetches() -> list[Row]:
    """Fetches of a Java consumer as a broker with a quota of 150 kB/s logged them, in order."""
    values = (GOLDEN / "remote_reads.jsonl").read_bytes().splitlines()
    lines = [line | {"cluster_id": "c"} for line in parsed(values, time=RECORD_TIME)]
    tables = {
        "requests": pa.Table.from_pylist(lines, schema=REQUESTS.arrow),
        "fetch_sessions": FETCH_SESSIONS.arrow.empty_table(),
    }
    rows = database().over(tables).query(fetch_lines.query(0, 1), fetch_lines.ROWS)
    followed = pa.Table.from_batches(follow_sessions(LIMITS)(iter(rows))).to_pylist()
    return [row for row in followed if row["kind"] == fetch_lines.FETCH]


def test_lines_of_a_broker_with_remote_storage() -> None:
    facts = logged_fetches()
    began = min(row["event_time"] for row in facts)
    topic_id = facts[0]["partitions"][0]["topic_id"]
    before = {"event_time": began - timedelta(minutes=1)}
    rows = rows_of(
        *facts,
        topics=[TOPIC | before | {"topic_id": topic_id}],
        partition_offsets=[starts() | before],
        configs=[quota("150000") | before],
    )
    names = ("principal", "client_id", "topic", *COUNTS)
    read = 4 * 300_000 + 159_971
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("User:alice", "old-reader", "orders", 5, read, 14, 14)
    ]
    assert 14 * 500 < rows[0]["empty_time_ms"] < 14 * 510
