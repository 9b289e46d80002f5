"""decode and parse: captured files through the pipeline's own code."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quotaflow.schemas.tables.declared import CLIENT_METRICS, REQUESTS

from ...cases import cases
from ...command_line import Command
from ...rows import Row

Points = Callable[..., list[Row]]


@pytest.fixture
def points(command: Command) -> Points:
    """The points of a payload."""
    return lambda *words: command("decode", *words).rows


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_gives_the_points_of_the_payload(
    points: Points, golden: Path, codec: str
) -> None:
    plain = points(str(golden / "otlp/java-cons-bob.data.bin"))
    packed = golden / f"otlp/java-cons-bob.codec.{codec}"
    assert points(str(packed), "--codec", codec) == plain
    assert len(plain) > 100
    assert list(plain[0]) == CLIENT_METRICS.column_names


def test_points_have_the_layouts_of_other_rows(
    command: Command, points: Points, golden: Path
) -> None:
    file = str(golden / "otlp/java-cons-bob.data.bin")
    whole = points(file)
    assert points(file, "--json") == whole
    lines = command("decode", file, "--csv", "--columns", "metric,kind").out.splitlines()
    assert lines == ["metric,kind", *(f"{row['metric']},{row['kind']}" for row in whole)]


def test_a_payload_may_come_on_stdin(
    points: Points, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = (golden / "otlp/rdk-idem-alice.data.bin").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payload), encoding="utf-8"))
    assert points("-") == points(str(golden / "otlp/rdk-idem-alice.data.bin"))


def test_an_empty_payload_is_legal(points: Points, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert points(str(tmp_path / "empty")) == []


def test_metrics_whose_text_is_not_utf8_are_counted(
    command: Command, points: Points, golden: Path, tmp_path: Path
) -> None:
    file = golden / "otlp/rdk-cons-carol.data.bin"
    name = b"consumer.connection.creation.rate"
    (tmp_path / "push").write_bytes(file.read_bytes().replace(name, b"\xff" * len(name)))
    whole = points(str(file))
    printed = command("decode", str(tmp_path / "push"))
    assert printed.err.endswith("metrics left out because their text is not UTF-8: 1\n")
    expected = [p["value"] for p in whole if not str(p["metric"]).endswith(name.decode())]
    assert [row["value"] for row in printed.rows] == expected
    assert len(expected) == len(whole) - 1


@cases(
    ("words", "expected"),
    ("compressed and not said so", [], "not_otlp"),
    ("another codec", ["--codec", "gzip"], "corrupt_payload"),
    (
        "a bound of conf",
        ["--codec", "zstd", "--set", "payloads.max_decoded_bytes=100"],
        "payload_too_large",
    ),
    ("a big file", ["--set", "ingest.max_line_bytes=10"], "max_line_bytes = 10"),
)
def test_an_unreadable_payload_is_one_error_with_its_reason(
    command: Command, golden: Path, words: list[str], expected: str
) -> None:
    file = str(golden / "otlp/java-cons-bob.codec.zstd")
    assert expected in command.error("decode", file, *words, code=1)


def test_lines_become_rows_and_unreadable_ones_reasons(
    command: Command, golden: Path, tmp_path: Path
) -> None:
    bare = (golden / "lines/produce.jsonl").read_text(encoding="utf-8").splitlines()[0]
    stock = f"[2026-11-21 01:01:01,000] DEBUG Completed request:{bare} (kafka.request.logger)"
    envelope = f'{{"ts":1795219200000,"broker":2,"r":{bare}}}'
    forwarded = bare.replace('"isForwarded":false', '"isForwarded":true')
    long = "x" * 60_000
    file = tmp_path / "request.log"
    lines = [bare, stock, envelope, "garbage", long, '{"a":1}', forwarded]
    file.write_text("\r\n".join(lines), encoding="utf-8")
    printed = command("parse", str(file), "--set", "ingest.max_line_bytes=50000", code=1)
    rows = printed.rows
    assert [row["source_offset"] for row in rows] == [1, 2, 3]
    assert {row["api"] for row in rows} == {"PRODUCE"}
    assert list(rows[0]) == REQUESTS.column_names
    assert (rows[2]["broker_id"], rows[2]["event_time"]) == (2, "2026-11-21T00:00:00.000000Z")
    bad = [json.loads(line) for line in printed.err.splitlines() if line.startswith('{"line"')]
    assert [(b["line"], b["reason"]) for b in bad] == [
        (4, "not_json"),
        (5, "line_too_long"),
        (6, "not_a_request_line"),
    ]
    assert "7 lines: 3 rows, 3 unreadable, 1 left out (1 forwarded_copy)" in printed.err
