"""Lines in layouts and records of shippers: the request, its time and broker; or the reason."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from quotaflow.pipelines.config import IngestSection

from ...record_batches import RECORD_TIME, parsed, parsed_cases
from .test_hostile_lines import GOOD

LINE = json.dumps(GOOD, separators=(",", ":"))
STOCK = f"[2026-11-20 10:00:00,123] DEBUG Completed request:{LINE} (kafka.request.logger)"
AT = datetime(2026, 11, 20, 10, 0, 0, 134_000, tzinfo=UTC)
S, MS = 1_795_168_800, 1_795_168_800_134
ISO = "2026-11-20T10:00:00.134Z"
BROKERS = (1, 3, 5, 6, 7, 9)
"""Brokers that a snapshot has."""


def assert_read(
    records: Mapping[str, str | bytes], times: Mapping[str, datetime] | datetime = AT
) -> dict[str, dict[str, Any]]:
    """Assert that each record is read as alice's line of that time; returns the rows."""
    encoded = {k: v if isinstance(v, bytes) else v.encode() for k, v in records.items()}
    rows = parsed_cases(encoded, brokers=BROKERS)
    names = ("reason", "principal", "event_time", "implausible_time")
    assert {case: tuple(row[name] for name in names) for case, row in rows.items()} == {
        case: (None, "User:alice", times if isinstance(times, datetime) else times[case], False)
        for case in records
    }
    return rows


def otlp(*lines: str) -> dict[str, Any]:
    records = [{"timeUnixNano": f"{MS}000000", "body": {"stringValue": line}} for line in lines]
    return {"resourceLogs": [{"scopeLogs": [{"scope": {}, "logRecords": records}]}]}


BY_SHIPPERS = [("Beats", {"@timestamp": ISO, "message": STOCK}),
        ("Logstash", {"@timestamp": ISO, "event": {"original": STOCK}}),
        ("Fluent Bit", {"@timestamp": S + 0.134, "log": STOCK}),
        ("log4j's JSON layout", {"instant": {"epochSecond": S, "nanoOfSecond": 134_000_000},
                      "message": f"Completed request:{LINE}"}),
        ("GELF", {"timestamp": S + 0.134, "short_message": STOCK}),
        ("Splunk", {"time": S + 0.134, "event": LINE}),
        ("Google Cloud", {"timestamp": ISO, "textPayload": STOCK}),
        ("CloudWatch", {"timestamp": MS, "message": STOCK}),
        ("OTLP", otlp(STOCK)),
        ("keys before the envelope's", {"@timestamp": ISO, "r": GOOD}),
        ("keys behind the envelope's", {"ts": MS, "r": GOOD, "host": "b1"}),
        ("keys beside the line's", {"@timestamp": ISO, **GOOD}),
        ("the request as a string", {"ts": MS, "r": LINE}),
]  # fmt: skip


def test_a_line_in_a_record_of_a_shipper_is_read_with_its_time() -> None:
    assert_read({case: json.dumps(record) for case, record in BY_SHIPPERS})


LAYOUTS = [
    ("no zone: the time of the record", STOCK, RECORD_TIME),
    ("UTC", STOCK.replace(",123", ",134Z"), AT),
    ("an offset", STOCK.replace("10:00:00,123", "11:00:00,134+0100"), AT),
    ("a container", f"2026-11-20T10:00:00.134000000Z stdout F {STOCK}", AT),
    ("syslog", f"<15>1 {ISO} kafka-1 kafka 4711 - - {STOCK}", AT),
    ("text behind the logger", f"{STOCK} {{}} [thread-1]", RECORD_TIME),
    ("an empty MDC before the layout", f"{{}} {STOCK}", RECORD_TIME),
    ("log4j's MDC before it", f"{{user=a b, id=2}} {STOCK}", RECORD_TIME),
    ("braces and quotes in it", f'{{a={{}}, b="x{{"}} {STOCK}', RECORD_TIME),
    ("hours of an offset", STOCK.replace("10:00:00,123", "11:00:00,134+01"), AT),
    ("colours", f"\x1b[36m{STOCK}\x1b[0m", RECORD_TIME),
    ("a hole of a sparse file", "\0" * 64 + STOCK, RECORD_TIME),
    ("CRLF", f"{STOCK}\r", RECORD_TIME),
    ("a byte order mark", f"\ufeff{LINE}", RECORD_TIME),
    ("a byte order mark before the layout", f"\ufeff{STOCK}", RECORD_TIME),
]


def test_a_line_in_any_layout_is_read() -> None:
    times = {case: time for case, _, time in LAYOUTS}
    assert_read({case: text for case, text, _ in LAYOUTS}, times)


def test_a_weight_stays_with_its_line_where_others_add_keys_to_the_envelope() -> None:
    (row,) = parsed([json.dumps({"@timestamp": ISO, "weight": 10, "r": GOOD}).encode()])
    assert (row["reason"], row["weight"]) == (None, 10.0)


def test_lines_that_a_broker_lost_are_named() -> None:
    (row,) = parsed([b'{"ts":1795168800134,"broker":3,"lost":57}'])
    assert row["reason"] == "lines_lost"
    assert row["detail"].startswith("broker 3: 57 lines found no room")
    other = [b'{"ts":1,"broker":3,"lost":"57"}', b'{"ts":1,"broker":3,"lost":57,"x":1}']
    assert {row["reason"] for row in parsed(other)} == {"not_a_request_line"}


def test_conf_names_the_zone_of_times_without_one() -> None:
    enveloped = json.dumps({"ts": "2026-11-20 10:00:00.123", "r": GOOD})
    texts = (STOCK, f"{STOCK} {{}}", enveloped)
    rows = parsed((text.encode() for text in texts), IngestSection(time_zone="Europe/Berlin"))
    at_nine = datetime(2026, 11, 20, 9, 0, 0, 123_000, tzinfo=UTC)
    assert [row["event_time"] for row in rows] == [at_nine] * len(texts)


TIMES = [
    (S, AT.replace(microsecond=0)),
    (S + 0.134, AT),
    (str(S), AT.replace(microsecond=0)),
    (MS, AT),
    (str(MS), AT),
    (MS * 1_000 + 5, AT.replace(microsecond=134_005)),
    (MS * 1_000_000 + 5, AT),
    (ISO, AT),
    ("2026-11-20 10:00:00,134 +00:00", AT),
    (f" {MS} ", AT),
    (f"{S}.134", AT),
    (f"{S}.134E0", AT),
    ("2026-11-20T11:00:00.134+01:00", AT),
    ("2026-11-20T11:00:00.134+0100", AT),
    ("2026-11-20T11:00:00.134+01", AT),
    ("2026-11-20T04:30:00.134-05:30", AT),
    ("2026-11-20T10:00:00.134z", AT),
    ("2026-11-20T10:00:00.134000999Z", AT),
    ("2026-11-20 10:00:00.134 UTC", AT),
    ("2026-11-20T10:00:00.134Z[UTC]", AT),
    ("2026-11-20T11:00:00.134+01:00[Europe/Berlin]", AT),
]
NO_TIMES = [
    *(0, -1, 60, "soon", "2026-11-20 10:00", True, [1], 10**30, 1e300, float("nan"), "NaN"),
    *(-MS, "", "2026-11-20", "2026-13-20T10:00:00Z", "9999-12-31T23:59:59Z", {"ms": MS}),
    *("2026-11-20 10:00:00 PST", 1_262_303_999_999, "Fri, 20 Nov 2026 10:00:00 GMT"),
]


def test_a_time_is_read_in_every_unit_and_form() -> None:
    rows = parsed(json.dumps({"ts": ts, "broker": 1, "r": GOOD}).encode() for ts, _ in TIMES)
    read = [(ts, row["event_time"]) for (ts, _), row in zip(TIMES, rows, strict=True)]
    assert read == TIMES
    assert not any(row["implausible_time"] for row in rows)


def test_a_time_that_cannot_be_is_the_record_s_and_counted() -> None:
    rows = parsed(json.dumps({"ts": ts, "broker": 1, "r": GOOD}).encode() for ts in NO_TIMES)
    seen = [(row["event_time"], row["implausible_time"]) for row in rows]
    wrong = [ts for ts, one in zip(NO_TIMES, seen, strict=True) if one != (RECORD_TIME, True)]
    assert not wrong


def test_a_time_far_from_its_record_is_counted_in_both_directions() -> None:
    lines = [json.dumps({"ts": MS + days * 86_400_000, "r": GOOD}).encode() for days in (-9, 0, 9)]
    rows = parsed(lines)
    assert [row["implausible_time"] for row in rows] == [True, False, True]
    assert rows[0]["event_time"] == datetime(2026, 11, 11, 10, 0, 0, 134_000, tzinfo=UTC)


@pytest.mark.parametrize("ms", [-1, 0, 59_999])
def test_a_record_without_a_time_bounds_nothing(ms: int) -> None:
    time = datetime.fromtimestamp(ms / 1_000, UTC)
    envelope = json.dumps({"ts": MS, "broker": 1, "r": GOOD}).encode()
    rows = parsed([envelope, LINE.encode()], time=time)
    assert [(row["event_time"], row["record_time"]) for row in rows[:1]] == [(AT, None)]
    assert [row["reason"] for row in rows] == [None, "no_time"]


BROKER_IDS = [
    *((1, 1), ("1", 1), (1.0, 1), ("my-cluster-kafka-12", 12), ("kafka-0.kafka-headless", 0)),
    ("kafka-2.kafka-headless.team-7.svc", 2),
    ("b-3.logs.c4.kafka.us-east-1.amazonaws.com", 3),
    *((-1, None), ("ip-10-0-0-1", None), ("b1", None), ("2026-11-20", None), (None, None)),
]


def test_a_broker_is_a_node_id_or_the_number_of_a_pod() -> None:
    records = [{"ts": MS, "broker": broker, "r": GOOD} for broker, _ in BROKER_IDS]
    rows = parsed(json.dumps(record).encode() for record in records)
    assert [(r["broker"], row["broker_id"]) for r, row in zip(records, rows, strict=True)] == (
        BROKER_IDS
    )


FIRST = "the first JSON object"
UNREAD = [
    (
        "before Kafka 2.8",
        "[2026] DEBUG Completed request:RequestHeader(apiKey=FETCH) -- {max=1},response:{}",
        "old_text_format",
        "brokers write JSON from Kafka 2.8 on",
    ),
    (
        "in a field that is not known",
        json.dumps({"payload": {"raw": STOCK}}),
        "wrapped_line",
        "record of a shipper: in the field payload.raw: put the line into message, ship it "
        "as the record's value, or set ingest.line_field",
    ),
    (
        "two lines in one record",
        json.dumps({"log": STOCK, "message": STOCK.replace("alice", "bob")}),
        "wrapped_line",
        "fluentd or Fluent Bit: 2 lines in one record, such as message: let the shipper send "
        "one line per record",
    ),
    ("two joined lines", STOCK + STOCK, "not_json", "two lines in one record"),
    ("a torn line", STOCK[:300], "not_json", f"{FIRST} breaks at character 294 of 300"),
    ("the rest of it", STOCK[300:], "not_json", f"{FIRST} ends at character 148 of 396"),
    ("another log", '{"message":"started"}', "not_a_request_line", None),
    (
        "another log of a broker",
        "[2026-11-20 10:00:00,123] INFO started (kafka.server.KafkaServer)",
        "not_a_request_line",
        None,
    ),
    ("another object", 'Completed request:{"message":"x"}', "not_a_request_line", None),
]


def test_what_is_not_read_has_a_reason_that_says_what_it_is() -> None:
    rows = parsed_cases({case: text.encode() for case, text, *_ in UNREAD})
    assert [(case, row["reason"], row["detail"]) for case, row in rows.items()] == [
        (case, reason, detail) for case, _, reason, detail in UNREAD
    ]


def test_a_client_id_that_looks_like_a_line_changes_nothing() -> None:
    header = GOOD["requestHeader"] | {"clientId": f"Completed request:{LINE}"}
    line = json.dumps(GOOD | {"requestHeader": header, "principal": "User:mallory"})
    texts = [line, f"[x] DEBUG Completed request:{line} (k)", json.dumps({"r": json.loads(line)})]
    assert [row["principal"] for row in parsed(each.encode() for each in texts)] == [
        "User:mallory"
    ] * 3


def test_bytes_of_another_charset_are_replaced() -> None:
    header = GOOD["requestHeader"] | {"clientId": "caf\xe9"}
    line = json.dumps(GOOD | {"requestHeader": header}, ensure_ascii=False)
    rows = parsed([line.encode("latin-1"), line.encode()])
    assert [row["client_id"] for row in rows] == ["caf\ufffd", "caf\xe9"]
