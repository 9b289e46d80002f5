"""What a topic does not hold any more of what a checkpoint has to read."""

import json
from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs import offset_gaps
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.streaming.topic_position import TopicPosition, read_position
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases

TOPIC = "conf"  # a key of Spark's own, too
JOB = "ingest"
PLANNED_MS = 1_000


def plan(checkpoint: Path, number: int, ends: dict[int, int], *, is_committed: bool) -> None:
    """What Spark 4.2 keeps of a micro-batch, line by line."""
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": PLANNED_MS + number, "conf": {"a": "b"}}
    offsets = {TOPIC: {str(partition): end for partition, end in ends.items()}}
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    lines = ["v1", json.dumps(metadata), json.dumps(offsets, separators=(",", ":"))]
    (checkpoint / "offsets" / str(number)).write_text("\n".join(lines))
    if is_committed:
        (checkpoint / "commits" / str(number)).write_text("v1\n{}")


def begin(checkpoint: Path, offsets: dict[int, int]) -> None:
    """What the Kafka source keeps of where it began."""
    file = checkpoint / "sources" / "0" / "0"
    file.parent.mkdir(parents=True)
    content = {TOPIC: {str(partition): offset for partition, offset in offsets.items()}}
    file.write_text(f"\0v1\n{json.dumps(content, separators=(',', ':'))}")


def test_a_query_that_never_planned_has_reached_nothing(tmp_path: Path) -> None:
    assert read_position(tmp_path, TOPIC) is None


def test_a_committed_batch_is_behind_it(tmp_path: Path) -> None:
    plan(tmp_path, 0, {0: 5}, is_committed=True)
    plan(tmp_path, 1, {0: 9, 1: 2}, is_committed=True)
    assert read_position(tmp_path, TOPIC) == TopicPosition({0: 9, 1: 2}, PLANNED_MS + 1)


def test_a_batch_that_was_cut_off_is_read_again(tmp_path: Path) -> None:
    plan(tmp_path, 0, {0: 5}, is_committed=True)
    plan(tmp_path, 1, {0: 9}, is_committed=False)
    assert read_position(tmp_path, TOPIC) == TopicPosition({0: 5}, PLANNED_MS, {0: 9})


def test_the_first_batch_begins_where_the_source_did(tmp_path: Path) -> None:
    begin(tmp_path, {0: 3})
    plan(tmp_path, 0, {0: 5}, is_committed=False)
    assert read_position(tmp_path, TOPIC) == TopicPosition({0: 3}, PLANNED_MS, {0: 5})


@cases(
    "text",
    ("torn", ""),
    ("another source", 'v1\n{"batchTimestampMs":1}\n{"logOffset":3}'),
    ("a version to come", 'v2\n{}\n{"conf":{"0":1}}'),
)
def test_what_spark_tells_in_another_way_is_left_to_spark(tmp_path: Path, text: str) -> None:
    plan(tmp_path, 0, {0: 5}, is_committed=True)
    (tmp_path / "offsets" / "0").write_text(text)
    assert read_position(tmp_path, TOPIC) is None


@cases(
    ("log", "expected"),
    ("all is there", {0: range(10), 1: range(4, 4)}, []),
    ("what was read was deleted", {0: range(9, 20), 1: range(5)}, []),
    ("all was read and deleted", {0: range(9, 9), 1: range(5)}, []),
    ("a leader does not answer now", {1: range(5)}, []),
    (
        "retention overtook the job",
        {0: range(12, 20), 1: range(5)},
        ["partition 0 begins at 12, so that the 3 records from 9 on", "Retention of the topic"],
    ),
    (
        "the log was cut back",
        {0: range(8), 1: range(5)},
        ["partition 0 ends at 8, and was read to 9", "unclean election"],
    ),
    (
        "both",
        {0: range(12, 20), 1: range(2)},
        ["partition 0 begins at 12", "partition 1 ends at 2, and was read to 4"],
    ),
)
def test_what_is_missing_is_named_by_partition(
    warehouse: Warehouse, log: dict[int, range], expected: list[str]
) -> None:
    plan(warehouse.checkpoint(JOB), 0, {0: 9, 1: 4}, is_committed=True)
    gaps = offset_gaps.find_in_job(warehouse, JOB, TOPIC, log)
    message = str(gaps.refusal()) if gaps else ""
    assert all(
        words in message for words in [*expected, *(["--accept-lost-records"] if expected else [])]
    )
    assert bool(gaps) == bool(expected)


@cases(
    ("read", "expected"),
    ("nothing", None, 95),
    ("some, and nothing of a partition that is new", {0: 60}, 85),
    ("up to records that are deleted", {0: 20, 1: 145}, 50),
    ("all", {0: 100, 1: 145}, 0),
)
def test_records_to_read_are_those_that_the_logs_have_behind_the_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: dict[int, int] | None, expected: int
) -> None:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    if read is not None:
        plan(warehouse.checkpoint(JOB), 0, read, is_committed=True)
    logs = {0: range(50, 100), 1: range(100, 145)}
    monkeypatch.setattr(admin, "log_bounds", lambda *_: logs)
    assert offset_gaps.unread({}, warehouse, {JOB: TOPIC}) == expected
