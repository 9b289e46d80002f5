"""Records as Spark's Kafka source hands them over, and pushes good and bad."""

import base64
import io
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard
from pyspark.sql import DataFrame, SparkSession

RECORD_TIME = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
Headers = dict[str, str]
# A value, or a value with the headers of its record.
Records = Iterable[bytes | tuple[bytes, Headers]]


@pytest.fixture(scope="session")
def topic(spark: SparkSession) -> Callable[..., DataFrame]:
    """A frame of records, the offset being the place in the list."""

    def make(records: Records, name: str = "logs", partition: int = 0) -> DataFrame:
        rows = []
        for offset, record in enumerate(records):
            value, given = record if isinstance(record, tuple) else (record, {"broker_id": "7"})
            headers = [(key, text.encode()) for key, text in given.items()]
            rows.append((None, value, name, partition, offset, RECORD_TIME, headers))
        return spark.createDataFrame(rows, RECORDS)

    return make


@pytest.fixture(scope="session")
def push_lines(golden: Path) -> list[dict[str, Any]]:
    """Every PUSH_TELEMETRY line a real cluster wrote, parsed."""
    text = (golden / "lines" / "push_telemetry.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="session")
def bomb() -> bytes:
    """256 MiB of zeros, which zstd makes 8 kB of."""
    packed = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(packed, closefd=False) as writer:
        for _ in range(256):
            writer.write(bytes(1 << 20))
    return packed.getvalue()


def encoded(line: Any) -> bytes:
    """A request-log line as a broker writes it."""
    return json.dumps(line, separators=(",", ":")).encode()


def pushing(line: dict[str, Any], payload: bytes | str, compression_type: int = 0) -> bytes:
    """The line with another payload: bytes, or text in the place of base64."""
    metrics = payload if isinstance(payload, str) else base64.b64encode(payload).decode()
    changed = {"metrics": metrics, "compressionType": compression_type}
    return encoded(line | {"request": line["request"] | changed})
