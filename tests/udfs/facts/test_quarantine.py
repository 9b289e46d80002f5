"""Heads of unreadable lines: kept to show what they are, never with a credential."""

import gzip
import json
from typing import Any

from quotaflow.pipelines.config import IngestSection
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.otlp.codecs import Limits

from ...cases import cases
from ...record_batches import RECORD_TIME, record_batch
from ..request_log.test_hostile_lines import GOOD, LINE, MS, encoded

LOG = RequestLog("cluster", IngestSection().line_options, Limits(), None)
READER = LOG.open()
SECRET = "TUFERV9VUF9TQUxURURfUEFTU1dPUkQ="


def secret_line(api: str, request: dict[str, Any]) -> bytes:
    header = GOOD["requestHeader"] | {"requestApiKeyName": api}
    line = GOOD | {"requestHeader": header, "request": request, "response": {"errorCode": 0}}
    return encoded({"ts": MS, "broker": 1, "r": line})


SCRAM = secret_line(
    "ALTER_USER_SCRAM_CREDENTIALS",
    {"upsertions": [{"name": "app", "salt": "c2FsdA==", "saltedPassword": SECRET}]},
)
SASL = secret_line("SASL_AUTHENTICATE", {"authBytes": SECRET})


def heads(values: list[bytes]) -> list[bytes | None]:
    facts = READER.read(record_batch(values), RECORD_TIME)
    by_offset = {r["source_offset"]: r["head"] for r in facts.tables["quarantine"].to_pylist()}
    return [by_offset.get(offset) for offset in range(len(values))]


@cases("line", ("SCRAM", SCRAM), ("SASL", SASL))
def test_no_part_of_a_credential_is_kept_wherever_a_line_is_torn(line: bytes) -> None:
    tears = range(1, len(line))
    torn = [part for at in tears for part in (line[:at], line[at:], line[at:] + LINE)]
    kept = [head for head in heads(torn) if head is not None]
    assert not [head for head in kept if any(part in head for part in (b"TUFE", b"UkQ="))]


@cases("line", ("SCRAM", SCRAM), ("SASL", SASL))
def test_nor_in_a_wrapper(line: bytes) -> None:
    parts = [part for at in range(1, len(line), 3) for part in (line[:at], line[at:])]
    wrapped = [
        encoded(record)
        for part in map(bytes.decode, parts)
        for record in ({"log": part, "stream": "stdout", "time": "x"}, {"x": {"raw": part}})
    ]
    kept = [head for head in heads([*wrapped, gzip.compress(line)]) if head is not None]
    assert not [head for head in kept if any(part in head for part in (b"TUFE", b"UkQ=", b"\x1f"))]


def test_what_is_no_line_of_brokers_is_not_kept_either() -> None:
    assert heads([b"hello", SCRAM.decode().encode("utf-16")]) == [None, None]


@cases(
    "text",
    ("two lines, one torn", LINE + LINE[:-3]),
    ("the beginning of one", LINE[:-3]),
    ("a bracket too many", LINE + b"}"),
    ("Kafka's layout, torn", b"[x] DEBUG Completed request:" + encoded(GOOD)[:-9]),
)
def test_a_head_behind_a_whole_header_is_kept(text: bytes) -> None:
    assert heads([text]) == [text[:4_096]]


def test_json_of_another_log_is_kept() -> None:
    text = json.dumps({"level": "INFO", "message": "started"}).encode()
    assert heads([text]) == [text]
