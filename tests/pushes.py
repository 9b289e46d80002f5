"""Lines of the request log as brokers write them, and pushes good and bad."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard


def encoded(line: Any) -> bytes:
    """A request-log line as a broker writes it."""
    return json.dumps(line, separators=(",", ":")).encode()


def pushing(line: dict[str, Any], payload: bytes | str, compression_type: int = 0) -> bytes:
    """The line with another payload: bytes, or text in the place of base64."""
    metrics = payload if isinstance(payload, str) else base64.b64encode(payload).decode()
    changed = {"metrics": metrics, "compressionType": compression_type}
    return encoded(line | {"request": line["request"] | changed})


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
