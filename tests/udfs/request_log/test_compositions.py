"""Layouts, wrappers and byte forms composed at random: each line is read right, or has a reason."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from quotaflow.udfs.request_log.columns import REASONS

from ...record_batches import RECORD_TIME, parsed
from .test_hostile_lines import GOOD
from .test_shipper_records import LOGGER, as_value, otlp
from .test_wrappers import AT, MS, S

OUTSIDE = "2026-11-20T10:00:07.000Z"
"""What a wrapper writes, some seconds after the line."""
AROUND = datetime(2026, 11, 20, 10, 0, 7, tzinfo=UTC)
STOCK = "[2026-11-20 10:00:00,134] DEBUG Completed request:%s (kafka.request.logger)"

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    [
        "{",
        '"}',
        "Completed request:",
        '\\"r\\":{',
        "} (kafka.request.logger)",
        "\u2028",
        "\U0001f600",
    ]
)
"""What a client may choose as its id."""


def _dumped(value: Any, ascii_: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_, separators=(",", ":"))


LAYOUTS: dict[str, Callable[[str], str]] = {
    "bare": str,
    "envelope": lambda r: f'{{"ts":{MS},"broker":7,"r":{r}}}',
    "keys around": lambda r: f'{{"a":"x","ts":{MS},"broker":"7","r":{r},"z":[1]}}',
    "request as text": lambda r: json.dumps({"ts": str(MS), "r": r}),
    "stock": lambda r: STOCK % r,
    "zoned": lambda r: (STOCK % r).replace(",134]", ",134Z]"),
    "MDC before": lambda r: f"{{user=a, id=2}} {STOCK % r}",
    "text behind": lambda r: f"{STOCK % r} {{}} [thread-1] -",
    "no logger": lambda r: f"10:00:00 DEBUG Completed request:{r}",
    "colours": lambda r: f"\x1b[36m{STOCK % r}\x1b[0m",
}
WRAPPERS: dict[str, Callable[[str], str]] = {
    "Filebeat": lambda t: json.dumps({"@timestamp": OUTSIDE, "message": t, "@metadata": {}}),
    "Logstash": lambda t: json.dumps({"@timestamp": OUTSIDE, "event": {"original": t}}),
    "Fluent Bit": lambda t: _dumped({"@timestamp": S + 7.0, "log": t}, False),
    "Fluent Bit, CRI": lambda t: json.dumps({"log": t, "_p": "F", "stream": "stdout"}),
    "docker": lambda t: json.dumps({"log": f"{t}\n", "stream": "stdout", "time": OUTSIDE}),
    "Vector": lambda t: json.dumps({"message": t, "source_type": "file", "timestamp": OUTSIDE}),
    "log4j JSON": lambda t: json.dumps(
        {"instant": {"epochSecond": S + 7}, "loggerName": LOGGER, "message": t}
    ),
    "GELF": lambda t: json.dumps({"version": "1.1", "timestamp": S + 7.0, "short_message": t}),
    "Splunk": lambda t: json.dumps({"time": S + 7, "event": t, "sourcetype": "kafka"}),
    "Google": lambda t: json.dumps({"timestamp": OUTSIDE, "textPayload": t}),
    "CloudWatch": lambda t: json.dumps({"logEvents": [{"timestamp": MS + 6866, "message": t}]}),
    "Datadog": lambda t: json.dumps([{"message": t, "ddsource": "k", "timestamp": MS + 6866}]),
    "journald": lambda t: json.dumps({"MESSAGE": t, "__REALTIME_TIMESTAMP": str((S + 7) * 10**6)}),
    "Connect": lambda t: json.dumps({"schema": {"type": "string"}, "payload": t}),
    "OTLP": lambda t: json.dumps(otlp(t)),
    "OTLP map": lambda t: json.dumps(otlp(as_value({"message": t, "@timestamp": OUTSIDE}))),
    "JSON string": json.dumps,
    "CRI": lambda t: f"{OUTSIDE} stdout F {t}",
    "RFC 5424": lambda t: f"<15>1 {OUTSIDE} kafka-7 kafka 4711 - - {t}",
}
BEFORE = ("CRI", "RFC 5424")
"""What writes before a text: a runtime or syslog, so the first around a line."""
BATCHES = ("OTLP", "OTLP map", "Datadog")
"""What has many lines in a record: the last around a line."""
FIELDS = sorted(WRAPPERS.keys() - {*BEFORE, *BATCHES})
BYTES: dict[str, Callable[[str], bytes]] = {
    "as is": str.encode,
    "BOM": lambda t: f"\ufeff{t}".encode(),
    "CRLF": lambda t: f"{t}\r\n".encode(),
    "blanks": lambda t: f"  {t}\n\n".encode(),
    "zeros": lambda t: b"\0" * 64 + t.encode() + b"\0",
    "UTF-16": lambda t: t.encode("utf-16"),
}
DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": lambda v, _: gzip.compress(v),
    "zstd": lambda v, _: zstandard.compress(v),
    "cut": lambda v, at: v[: at % len(v)],
    "the rest": lambda v, at: v[1 + at % len(v) :],
    "twice": lambda v, _: v + v,
    "frame": lambda v, _: b"\0\0\0\0\7" + v,
}

Parts = tuple[str, str | None, str | None, str | None, str]
"""Layout, what writes before it, two wrappers, and the form of bytes."""
COMPOSED = st.tuples(
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([None, *BEFORE]),
    st.sampled_from([None, *FIELDS]),
    st.sampled_from([None, *FIELDS, *BATCHES]),
    st.sampled_from(sorted(BYTES)),
)
SILENT = {"JSON string", "Connect", "Fluent Bit, CRI"}
"""Wrappers that tell no time."""


def line_of(client_id: str, *, is_ascii: bool) -> str:
    header = GOOD["requestHeader"] | {"clientId": client_id}  # type: ignore[operator]
    return _dumped(GOOD | {"requestHeader": header}, is_ascii)


def composed(request: str, parts: Parts) -> bytes:
    layout, *around, form = parts
    text = LAYOUTS[layout](request)
    for name in filter(None, around):
        text = WRAPPERS[name](text)
    return BYTES[form](text)


# To read a line takes as long as to read twenty.
few = settings(max_examples=settings.default.max_examples // 8)
MANY = {"min_size": 10, "max_size": 20}


@few
@given(st.lists(st.tuples(COMPOSED, TEXTS, st.booleans()), **MANY))
def test_a_line_is_read_whole_in_every_composition(cases: list[tuple[Parts, str, bool]]) -> None:
    rows = parsed(composed(line_of(text, is_ascii=ascii_), parts) for parts, text, ascii_ in cases)
    for row, (parts, client_id, _) in zip(rows, cases, strict=True):
        assert (row["reason"], row["detail"]) == (None, None)
        assert (row["principal"], row["client_id"]) == ("User:alice", client_id)
        assert (row["api"], row["correlation_id"], row["total_time_ms"]) == ("FETCH", 7, 1.5)
        assert (row["event_time"], row["implausible_time"]) == (time_of(parts), False)


def time_of(parts: Parts) -> datetime:
    """The line's own time if it has a zone, else that of the innermost wrapper with a time."""
    layout, *around, _ = parts
    if layout in {"envelope", "keys around", "request as text", "zoned"}:
        return AT
    with_time = [name for name in around if name and name not in SILENT]
    if not with_time:
        return RECORD_TIME
    return AT if with_time[0] == "OTLP" else AROUND


@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_within_a_field_is_named(batch: str) -> None:
    around = [("bare", None, batch, field, "as is") for field in FIELDS]
    for row in parsed(composed(line_of("app", is_ascii=True), parts) for parts in around):
        assert row["reason"] == "wrapped_line"
        assert row["detail"].endswith(
            "a batch of lines within a field: ship the batch as the record's value"
        )


@few
@given(
    st.lists(
        st.tuples(COMPOSED, TEXTS, st.sampled_from(sorted(DAMAGES)), st.integers(0, 10**6)), **MANY
    )
)
def test_a_damaged_value_is_read_as_its_line_or_has_a_reason(
    cases: list[tuple[Parts, str, str, int]],
) -> None:
    values = [
        DAMAGES[damage](composed(line_of(text, is_ascii=True), parts), at)
        for parts, text, damage, at in cases
    ]
    for row in parsed(values):
        _, client_id, damage, _ = cases[row["source_offset"]]
        if row["reason"] is None:
            # Blanks, or text around the request, alone were lost.
            read = (row["principal"], row["client_id"], row["correlation_id"])
            assert read == ("User:alice", client_id, 7)
        else:
            assert row["reason"] in REASONS
        if damage in {"gzip", "zstd", "frame"}:
            assert (row["reason"], bool(row["detail"])) == ("wrapped_line", True)
