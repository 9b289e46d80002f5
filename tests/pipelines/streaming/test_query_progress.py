"""Rows of query_progress from the progress that Spark reports."""

from datetime import UTC, datetime
from typing import Any

import pytest

from quotaflow.pipelines.streaming import query_progress
from quotaflow.schemas.tables.declared import QUERY_PROGRESS

from ...cases import cases

KAFKA = {
    "description": "KafkaV2[Subscribe[logs]]",
    "numInputRows": 819,
    "inputRowsPerSecond": 10.0,
    "processedRowsPerSecond": 31.0,
    "startOffset": None,
    "endOffset": {"logs": {"0": 8, "1": 5}},
    "latestOffset": {"logs": {"0": 10, "1": 5, "2": 4}},
    "metrics": {"maxOffsetsBehindLatest": "4"},
}
DELTA = {
    "description": "DeltaSource[file:/data/requests]",
    "endOffset": {"sourceVersion": 1, "reservoirId": "t", "reservoirVersion": 3, "index": -1},
    "latestOffset": None,
    "metrics": {"numFilesOutstanding": "2", "numBytesOutstanding": "4096"},
}
PROGRESS = {
    "id": "q1",
    "runId": "r1",
    "timestamp": "2026-11-22T01:44:52.436Z",
    "batchId": 4,
    "durationMs": {"triggerExecution": 2608, "addBatch": 2134, "walCommit": 93, "later": 1},
    "stateOperators": [
        {"numRowsTotal": 400, "memoryUsedBytes": 1000, "numRowsDroppedByWatermark": 2},
        {"numRowsTotal": 9, "memoryUsedBytes": 500},
    ],
    "sources": [KAFKA],
}


def row(**others: Any) -> dict[str, Any]:
    return query_progress.of_batch(PROGRESS | others, "job", "c1")


def test_a_batch_has_its_times_rows_and_state() -> None:
    made = row()
    assert set(made) <= set(QUERY_PROGRESS.column_names)
    assert made["event_time"] == datetime(2026, 11, 22, 1, 44, 52, 436_000, tzinfo=UTC)
    assert (made["query_id"], made["run_id"], made["batch_id"]) == ("q1", "r1", 4)
    assert (made["duration_ms"], made["add_batch_ms"], made["wal_commit_ms"]) == (2608, 2134, 93)
    assert (made["state_rows"], made["state_bytes"], made["late_rows"]) == (409, 1500, 2)


def test_a_batch_is_of_the_cluster_of_its_rows_where_they_tell() -> None:
    assert row()["cluster_id"] == "c1"
    assert row(observedMetrics={"newest_cluster": {"cluster_id": "c2"}})["cluster_id"] == "c2"
    assert row(observedMetrics={"newest_cluster": {"cluster_id": None}})["cluster_id"] == "c1"


def test_of_a_topic_no_more_came_than_a_batch_spans() -> None:
    """A frame that is not cached is read three times."""
    source = KAFKA | {"numInputRows": 39, "startOffset": {"logs": {"0": 1, "1": 0}}}
    assert row(sources=[source])["input_rows"] == 12


@cases(
    ("source", "expected"),
    ("records of a topic, a new partition's too", KAFKA, (6, None, None)),
    (
        "offsets as JSON text",
        KAFKA | {"endOffset": '{"logs": {"0": 8}}', "latestOffset": '{"logs": {"0": 9}}'},
        (1, None, None),
    ),
    (
        "offsets in the form of a client before Spark 4.2: not known",
        KAFKA | {"latestOffset": "{'logs': {'0': 9}}"},
        (None, None, None),
    ),
    (
        "read past what was known to be the end",
        KAFKA | {"endOffset": {"logs": {"0": 12, "1": 5, "2": 4}}},
        (0, None, None),
    ),
    ("files of a table", DELTA, (None, 2, 4096)),
    ("a source without metrics", DELTA | {"metrics": {}}, (None, None, None)),
    ("nothing", DELTA | {"metrics": None, "latestOffset": "null"}, (None, None, None)),
)
def test_how_far_behind_a_batch_was(
    source: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    made = row(sources=[source])
    assert tuple(made[f"behind_{unit}"] for unit in ("offsets", "files", "bytes")) == expected


@pytest.mark.parametrize(
    "others",
    [{"numInputRows": None}, {"inputRowsPerSecond": None}, {"inputRowsPerSecond": "NaN"}],
    ids=["no rows told", "no rate", "a rate that is no number"],
)
def test_what_spark_does_not_tell_is_not_made_up(others: dict[str, Any]) -> None:
    made = row(sources=[KAFKA | others])
    assert made["input_rows"] == (0 if "numInputRows" in others else 819)
    assert made["input_rows_per_s"] == (10.0 if "numInputRows" in others else None)


def test_a_look_that_found_nothing_has_no_batch() -> None:
    idle = query_progress.of_idle(PROGRESS, "job", "c1")
    assert "batch_id" not in idle
    assert (idle["job"], idle["input_rows"]) == ("job", 0)
