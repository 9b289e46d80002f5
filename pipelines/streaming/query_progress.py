"""`query_progress`: one row per micro-batch of a query, from the progress Spark reports as JSON."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from quotaflow.pipelines.streaming.sources import NEWEST_CLUSTER

Row = dict[str, Any]

_PHASES = {
    "triggerExecution": "duration_ms",
    "latestOffset": "latest_offset_ms",
    "getBatch": "get_batch_ms",
    "queryPlanning": "query_planning_ms",
    "walCommit": "wal_commit_ms",
    "addBatch": "add_batch_ms",
    "commitOffsets": "commit_offsets_ms",
}
_OUTSTANDING = {"behind_files": "numFilesOutstanding", "behind_bytes": "numBytesOutstanding"}
_STATE = {
    "state_rows": "numRowsTotal",
    "state_bytes": "memoryUsedBytes",
    "late_rows": "numRowsDroppedByWatermark",
}


def of_batch(progress: Mapping[str, Any], job: str, cluster_id: str | None) -> Row:
    """The row of one batch.

    Its cluster is that of its rows if the progress has one, else the one given.
    """
    newest = (progress.get("observedMetrics") or {}).get(NEWEST_CLUSTER) or {}
    return {
        **_common_columns(progress, job, newest.get("cluster_id") or cluster_id),
        "batch_id": int(progress["batchId"]),
        "input_rows": input_rows(progress),
        "input_rows_per_s": _rate(progress, "inputRowsPerSecond"),
        "processed_rows_per_s": _rate(progress, "processedRowsPerSecond"),
        **{_PHASES[phase]: ms for phase, ms in progress["durationMs"].items() if phase in _PHASES},
        **_behind(progress["sources"]),
        **_state(progress["stateOperators"]),
    }


def of_idle(event: Mapping[str, Any], job: str, cluster_id: str | None) -> Row:
    """The row of a trigger that found no new rows."""
    return {**_common_columns(event, job, cluster_id), "input_rows": 0}


def input_rows(progress: Mapping[str, Any]) -> int:
    """The number of rows read, from the sources: on Spark Connect only they have it.

    For a topic it is at most the batch's number of offsets: where frames cannot be cached, records
    are read more than once.
    """
    return sum(_input_rows(source) for source in progress["sources"])


def _input_rows(source: Mapping[str, Any]) -> int:
    rows = int(source.get("numInputRows") or 0)
    start, end = _offsets(source.get("startOffset")), _offsets(source.get("endOffset"))
    if not start or not end:
        return rows
    return min(rows, sum(offset - start.get(partition, 0) for partition, offset in end.items()))


def _common_columns(event: Mapping[str, Any], job: str, cluster_id: str | None) -> Row:
    return {
        "cluster_id": cluster_id,
        "event_time": datetime.fromisoformat(event["timestamp"]),
        "job": job,
        "query_id": event["id"],
        "run_id": event["runId"],
    }


def _rate(progress: Mapping[str, Any], name: str) -> float | None:
    rates = [source.get(name) for source in progress["sources"]]
    return _sum(rate if isinstance(rate, int | float) else None for rate in rates)


def _behind(sources: list[Mapping[str, Any]]) -> Row:
    offsets = [_offsets_behind(source) for source in sources]
    return {"behind_offsets": _sum(offsets)} | {
        column: _sum(_whole((source.get("metrics") or {}).get(name)) for source in sources)
        for column, name in _OUTSTANDING.items()
    }


def _offsets_behind(source: Mapping[str, Any]) -> int | None:
    """Records between the end of the batch and the end of the topic; None for other sources."""
    latest, end = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
    if not latest or end is None:
        return None
    # A new partition that is not read yet has no end offset.
    return sum(max(offset - end.get(partition, 0), 0) for partition, offset in latest.items())


def _offsets(value: Any) -> dict[tuple[str, str], int] | None:
    """Topic and partition -> offset; None for any other value.

    Classic sessions give JSON text; Connect's clients an object, or before Spark 4.2 Python's text.
    """
    try:
        by_topic = json.loads(value) if isinstance(value, str) else value
        return {
            (topic, partition): int(offset)
            for topic, partitions in by_topic.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, TypeError, AttributeError):
        return None


def _state(operators: list[Mapping[str, Any]]) -> Row:
    return {
        column: _sum(_whole(operator.get(name)) for operator in operators)
        for column, name in _STATE.items()
    }


def _whole(value: Any) -> int | None:
    return int(value) if value is not None and str(value).isdecimal() else None


def _sum(numbers: Any) -> float | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None
