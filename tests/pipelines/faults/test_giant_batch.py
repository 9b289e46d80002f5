"""A batch of several times the heap: it goes by disk and ends right, not by OutOfMemoryError."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.spark import session

from ...live.tables_read import query
from . import recorded, storm
from .command import conf_file
from .driver import outcome

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(3_600)]

JOB = "ingest_request_log"
HEAP_BYTES = 1 << 30
LONG_BYTES = 400_000
LONG, PUSHES, PRODUCED = 4_500, 1_000, 2_000
PARTITIONS = 300
_MIB = 1 << 20


def by_api(name: str) -> list[Any]:
    """Recorded requests of one API."""
    lines = [json.loads(line) for line in recorded.golden_lines()]
    requests = [line.get("r", line) for line in lines if "level" not in line]
    return [line for line in requests if line["requestHeader"]["requestApiKeyName"] == name]


def encoded(request: Any, number: int) -> bytes:
    """The line of a request, identified by its number."""
    request["requestHeader"]["correlationId"] = number
    return json.dumps(request, separators=(",", ":")).encode()


def long_line() -> Any:
    """A request for metadata whose body is cut: too long to be kept."""
    line = by_api("METADATA")[0]
    names = [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": f"topic-{n:06}"} for n in range(8_000)]
    line["request"]["topics"] = names
    assert len(encoded(line, 0)) > LONG_BYTES
    return line


def long_push() -> Any:
    """A push whose payload says the same again and again, and whose points are so few."""
    line = next(line for line in by_api("PUSH_TELEMETRY") if line["response"]["errorCode"] == 0)
    payload = storm.opened(line)
    many = payload * (LONG_BYTES * 3 // 4 // len(payload) + 1)
    return json.loads(storm.pushing(line, many, 0))


def wide_line() -> Any:
    """A request that produces to many partitions, all of which are columns of its row."""
    line = by_api("PRODUCE")[0]
    topic, answer = line["request"]["topicData"][0], line["response"]["responses"][0]
    for rows in (topic["partitionData"], answer["partitionResponses"]):
        rows[:] = [rows[0] | {"index": n} for n in range(PARTITIONS)]
    return line


def giant() -> Iterator[tuple[int, bytes]]:
    """The batch, made while it is written."""
    kinds = [(long_line(), LONG), (long_push(), PUSHES), (wide_line(), PRODUCED)]
    offset = 0
    for line, number in kinds:
        for _ in range(number):
            yield offset, encoded(line, offset)
            offset += 1


def test_a_batch_of_several_times_the_heap_goes_by_disk(tmp_path: Path) -> None:
    size = 0

    def weighed() -> Iterator[tuple[int, bytes]]:
        nonlocal size
        for offset, line in giant():
            size += len(line)
            yield offset, line

    recorded.write(tmp_path / "topic", [weighed()])
    assert size > 2 * HEAP_BYTES
    spark = {"driver_memory": f"{HEAP_BYTES // _MIB}m", "conf": session.SHORT_LIVED}
    code, output = outcome("killed", conf_file(tmp_path, spark=spark), "", JOB)
    assert code == 0, output
    assert "OutOfMemory" not in output
    progress = query(
        tmp_path / "warehouse",
        "SELECT api, count(*) AS rows, count(DISTINCT source_offset) AS places, "
        "sum(source_offset - correlation_id) AS off, sum(length(body)) AS body, "
        "sum(cardinality(partitions)) AS partitions FROM requests GROUP BY api",
    )
    by_api = {row["api"]: (row["rows"], row["places"], row["off"]) for row in progress}
    assert by_api == {
        "METADATA": (LONG, LONG, 0),
        "PUSH_TELEMETRY": (PUSHES, PUSHES, 0),
        "PRODUCE": (PRODUCED, PRODUCED, 0),
    }
    partitions = {row["api"]: row["partitions"] for row in progress}
    assert partitions["PRODUCE"] == PRODUCED * PARTITIONS
    assert query(tmp_path / "warehouse", "SELECT * FROM quarantine") == []
    (pushes,) = query(
        tmp_path / "warehouse",
        "SELECT count(*) AS rows, min(wire_bytes) AS least, min(decoded_bytes) AS decoded "
        "FROM telemetry_pushes WHERE unreadable_reason IS NULL",
    )
    payload = base64.b64decode(long_push()["request"]["metrics"])
    assert (pushes["rows"], pushes["least"], pushes["decoded"]) == (
        PUSHES,
        len(payload),
        len(payload),
    )
