"""Records of each shipper and JSON layout: request, time and broker; or a reason with the cure."""

import base64
import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

from quotaflow.pipelines.config import IngestSection
from quotaflow.udfs.request_log.framings import MOST_LINES

from ...record_batches import parsed, parsed_cases
from .test_hostile_lines import GOOD
from .test_wrappers import AT, BROKERS, ISO, LINE, MS, STOCK, S, assert_read

COMPLETED = f"Completed request:{LINE}"
ENVELOPE = {"ts": MS, "broker": 7, "r": GOOD}
OTHER = "[2026-11-20 10:00:00,123] INFO started (kafka.server.KafkaServer)"
LOGGER = "kafka.request.logger"
RFC3164 = "<15>Nov 20 10:00:00 kafka-3 kafka[4711]: "
LOG4J_INSTANT = {"epochSecond": S, "nanoOfSecond": 134_000_000}
POD = {"pod_name": "prod-kafka-3", "namespace_name": "kafka", "host": "worker-9"}


def attributes(**values: str) -> list[dict[str, Any]]:
    return [{"key": k.replace("_", "."), "value": {"stringValue": v}} for k, v in values.items()]


def otlp(*bodies: Any, **resource: str) -> dict[str, Any]:
    records = [
        {
            "timeUnixNano": f"{MS}000000",
            "body": body if isinstance(body, dict) else {"stringValue": body},
        }
        for body in bodies
    ]
    whole = {"resource": {"attributes": attributes(**resource)}}
    return {"resourceLogs": [whole | {"scopeLogs": [{"logRecords": records}]}]}


def as_value(node: Any) -> dict[str, Any]:
    """JSON as a value of OTLP."""
    if isinstance(node, dict):
        pairs = [{"key": k, "value": as_value(v)} for k, v in node.items()]
        return {"kvlistValue": {"values": pairs}}
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    if node is None:
        return {}
    if isinstance(node, list):
        return {"arrayValue": {"values": [as_value(each) for each in node]}}
    return {kind[type(node)]: str(node) if type(node) is int else node}


RECORDS = [
    ("logstash of log4j2", "logstash", 3,
     {"@timestamp": ISO, "@version": "1", "message": COMPLETED, "logger_name": LOGGER,
      "source_host": "kafka-3"}),
    ("ECS", "ECS layout", None,
     {"@timestamp": ISO, "ecs.version": "1.2.0", "log.level": "DEBUG", "message": COMPLETED,
      "log.logger": LOGGER}),
    ("JsonLayout", "log4j JSON layout", None,
     {"instant": LOG4J_INSTANT, "loggerName": LOGGER, "message": COMPLETED}),
    ("JsonLayout of log4j 2.8", "log4j JSON layout", None,
     {"timeMillis": MS, "loggerName": LOGGER, "message": COMPLETED}),
    ("GELF", "GELF", 3,
     {"version": "1.1", "host": "kafka-3", "short_message": COMPLETED,
      "timestamp": S + 0.134, "level": 7, "_logger": LOGGER}),
    ("Fluent Bit on Kubernetes", "fluentd or Fluent Bit", 3,
     {"@timestamp": S + 0.134, "log": STOCK, "kubernetes": POD}),
    ("our layout on a console", "fluentd or Fluent Bit", 7,
     {"log": json.dumps(ENVELOPE), "stream": "stdout", "kubernetes": POD}),
    ("a filter that has read the JSON", "fluentd or Fluent Bit", 3,
     {"@timestamp": S + 0.134, "log": "x", "log_processed": ENVELOPE | {"broker": 3}}),
    ("fluentd", "fluentd or Fluent Bit", None,
     {"message": STOCK, "time": "2026-11-20 10:00:00.134 +0000", "docker": {}}),
    ("Filebeat", "Filebeat", 3,
     {"@timestamp": ISO, "@metadata": {"beat": "filebeat"}, "message": STOCK,
      "fields": {"broker_id": 3}, "host": {"name": "kafka-5"}}),
    ("Filebeat on Kubernetes", "Filebeat", 3,
     {"@timestamp": ISO, "agent": {"type": "filebeat"}, "input": {}, "message": STOCK,
      "kubernetes": {"pod": {"name": "kafka-3"}}, "host": {"name": "worker-9"}}),
    ("Logstash, which keeps the line twice", "logstash", None,
     {"@timestamp": ISO, "message": STOCK, "event": {"original": STOCK}, "@version": "1"}),
    ("Vector", "Vector", 3,
     {"file": "/log", "host": "kafka-3", "message": STOCK, "source_type": "file",
      "timestamp": ISO}),
    ("OTLP", "OTLP logs", 3, otlp(STOCK, k8s_pod_name="kafka-3")),
    ("OTLP of a host", "OTLP logs", None, otlp(STOCK, host_name="worker-9")),
    ("OTLP with a map", "OTLP logs", 3, otlp(as_value(ENVELOPE | {"broker": 3}))),
    ("OTLP with names of protobuf", "OTLP logs", None,
     {"resource_logs": [{"scope_logs": [{"log_records": [
         {"time_unix_nano": f"{MS}000000", "body": {"string_value": STOCK}}]}]}]}),
    ("docker", "docker", None,
     {"log": f"{STOCK}\n", "stream": "stdout", "time": "2026-11-20T10:00:00.134000001Z"}),
    ("CloudWatch", "CloudWatch", 3,
     {"messageType": "DATA_MESSAGE", "logGroup": "kafka", "logStream": "kafka-3",
      "logEvents": [{"id": "1", "timestamp": MS, "message": STOCK}]}),
    ("Splunk", "Splunk HEC", 3,
     {"time": S + 0.134, "host": "kafka-3", "sourcetype": "kafka", "event": STOCK}),
    ("Splunk with an object", "Splunk HEC", 3,
     {"time": S + 0.134, "source": "kafka", "event": {"line": STOCK},
      "fields": {"pod": "kafka-3"}}),
    ("Google Cloud", "Google Cloud", 3,
     {"logName": "projects/p/logs/stdout", "textPayload": STOCK, "timestamp": ISO,
      "resource": {"labels": {"pod_name": "kafka-3"}, "type": "k8s_container"}}),
    ("Google Cloud, which reads JSON", "Google Cloud", 3,
     {"logName": "projects/p/logs/stdout", "timestamp": "2026-11-20T10:00:07Z",
      "jsonPayload": {"ts": float(MS), "broker": 3.0, "r": GOOD}}),
    ("Datadog", "Datadog", 3,
     {"message": STOCK, "ddsource": "kafka", "hostname": "worker-9", "timestamp": MS,
      "ddtags": "env:prod,pod_name:kafka-3"}),
    ("journald", "journald", 3,
     {"MESSAGE": STOCK, "__REALTIME_TIMESTAMP": str(MS * 1_000), "_HOSTNAME": "kafka-3"}),
    ("Kafka Connect", "Kafka Connect", 7,
     {"schema": {"type": "string"}, "payload": json.dumps(ENVELOPE)}),
    ("a list", "Datadog", None, [{"message": STOCK, "ddsource": "kafka", "timestamp": MS}]),
    ("a string", "JSON string", 7, json.dumps(ENVELOPE)),
]  # fmt: skip


def test_a_record_is_read_with_its_time_its_broker_and_a_name() -> None:
    rows = assert_read({case: json.dumps(record) for case, *_, record in RECORDS})
    assert [(case, row["form"], row["broker_id"]) for case, row in rows.items()] == [
        (case, f"wrapped ({form})", broker_id) for case, form, broker_id, _ in RECORDS
    ]


BEHIND = [
    ("our layout in CRI", 7, f"{ISO} stdout F {json.dumps(ENVELOPE)}"),
    ("a bare line in syslog", 3, f"{ISO} kafka-3 kafka: {json.dumps(GOOD)}"),
    ("in RFC 5424", 3, f"<15>1 {ISO} kafka-3 kafka 1 - - {LINE}"),
    ("stock layout in RFC 5424", 3, f"<15>1 {ISO} kafka-3 kafka 1 - - {STOCK}"),
    ("our layout in RFC 3164", 7, f"{RFC3164}{json.dumps(ENVELOPE)}"),
    ("stock in RFC 3164", 3, f"{RFC3164}{STOCK.replace(',123', ',134Z')}"),
    ("a JSON layout in CRI", 3,
     f"{ISO} stderr F "
     + json.dumps({"message": COMPLETED, "loggerName": LOGGER, "hostname": "kafka-3"})),
    ("twice wrapped", 7,
     json.dumps({"log": json.dumps({"message": json.dumps(ENVELOPE), "@timestamp": "x"})})),
    ("a time behind the request", None, f"{LINE[:-1]},\"time\":\"{ISO}\"}}"),
    ("a byte order mark and CRLF", 7, f"\ufeff{json.dumps(ENVELOPE)}\r\n"),
]  # fmt: skip


def test_a_line_is_read_behind_what_a_runtime_or_syslog_writes() -> None:
    rows = assert_read({case: text for case, _, text in BEHIND})
    assert [(case, row["broker_id"]) for case, row in rows.items()] == [
        (case, broker_id) for case, broker_id, _ in BEHIND
    ]


def test_utf_16_is_read() -> None:
    (row,) = parsed([json.dumps(ENVELOPE).encode("utf-16")])
    assert (row["reason"], row["event_time"]) == (None, AT)


def protobuf(*bodies: Any, **resource: str) -> bytes:
    data: bytes = ParseDict(otlp(*bodies, **resource), LogsData()).SerializeToString()
    return data


def test_a_batch_of_otlp_is_a_row_for_each_line() -> None:
    lines = [STOCK, OTHER, json.dumps(ENVELOPE), STOCK.replace("alice", "bob")]
    batches = [json.dumps(otlp(*lines, k8s_pod_name="kafka-3")).encode(),
               json.dumps(ENVELOPE).encode(),
               protobuf(*lines, k8s_pod_name="kafka-3"),
               b""]  # fmt: skip
    rows = parsed(batches, brokers=BROKERS)
    several = [
        (0, "User:alice", 3, None),
        (1, None, None, "not_a_request_line"),
        (2, "User:alice", 7, None),
        (3, "User:bob", 3, None),
    ]
    alone = [(None, "User:alice", 7, None)]
    names = ("source_line", "principal", "broker_id", "reason")
    assert [tuple(row[name] for name in names) for row in rows] == [
        *several, *alone, *several, (None, None, None, "empty_line"),
    ]  # fmt: skip
    assert [row["source_offset"] for row in rows] == [0, 0, 0, 0, 1, 2, 2, 2, 2, 3]
    assert {row["event_time"] for row in rows if row["principal"]} == {AT}


def test_a_record_of_many_lines_is_not_copied_for_each_of_them() -> None:
    """The copies would take 2,400 times 3 MB, more than a column of text can have."""
    lines = [STOCK.replace("alice", f"{n:05}-" + "x" * 400) for n in range(2_400)]
    rows = parsed([protobuf(*lines)])
    assert [row["reason"] for row in rows] == [None] * len(lines)
    assert rows[-1]["principal"] == f"User:02399-{'x' * 400}"


def as_text(record: Any) -> str:
    return json.dumps(record, ensure_ascii=False)


ESCAPED = "".join(f"\\u{ord(c):04x}" for c in STOCK)
VARIANTS = [
    ("unicode escapes", f'{{"@timestamp":"{ISO}","log":"{ESCAPED}"}}'),
    ("BOM, CRLF", f"\ufeff{as_text({'@timestamp': ISO, 'message': STOCK})}\r\n"),
    ("indented", json.dumps({"time": ISO, "msg": f"{STOCK}\r\n"}, indent=2)),
    ("Fluent Bit's json_date_key and double", as_text({"date": S + 0.134, "log": STOCK})),
    ("json_date_format", as_text({"date": "2026-11-20T10:00:00.134000Z", "log": STOCK})),
    ("CRI in Fluent Bit", as_text({"@timestamp": MS, "log": f"{ISO} stdout F {STOCK}"})),
    ("Filebeat, whose log is an object",
     as_text({"@timestamp": ISO, "log": {"offset": 1, "file": {"path": "/l"}},
              "message": STOCK, "agent": {"type": "filebeat"}, "input": {"type": "log"}})),
    ("an ingest pipeline's event.original alone",
     as_text({"@timestamp": ISO, "event": {"original": STOCK, "dataset": "kafka.log"}})),
    ("an object in message",
     as_text({"@timestamp": ISO, "message": {"ts": MS, "broker": 1, "r": GOOD}})),
    ("a list in message", as_text({"timestamp": ISO, "message": [STOCK]})),
    ("a request as a string", as_text({"r": json.dumps(GOOD), "ts": ISO})),
    ("a text as ts", as_text({"ts": str(MS), "r": GOOD, "extra": [1, {"a": 2}]})),
    ("log4j's instant as texts",
     as_text({"instant": {"epochSecond": str(S), "nanoOfSecond": "134000000"},
              "loggerName": LOGGER, "message": COMPLETED})),
    ("log4j's timeMillis as a text",
     as_text({"timeMillis": str(MS), "loggerName": LOGGER, "message": COMPLETED})),
    ("logstash with a zone without a colon",
     as_text({"@timestamp": "2026-11-20T11:00:00.134+0100", "message": COMPLETED})),
    ("GELF, the line in full_message",
     as_text({"version": "1.1", "short_message": "Completed request", "full_message": COMPLETED,
              "timestamp": str(S + 0.134)})),
    ("Splunk's time as a text, an event as a string",
     as_text({"time": f"{S}.134", "event": as_text({"message": STOCK}), "source": "kafka"})),
    ("Google Cloud, a time in two numbers",
     as_text({"logName": "x", "textPayload": STOCK,
              "timestamp": {"seconds": S, "nanos": 134_000_000}})),
    ("a list of strings", as_text([as_text({"message": STOCK, "timestamp": ISO})])),
]  # fmt: skip


def test_options_of_shippers_change_nothing() -> None:
    assert_read(dict(VARIANTS))


def test_header_and_key_name_the_broker_before_a_wrapper_does() -> None:
    record = json.dumps({"log": STOCK, "kubernetes": POD}).encode()
    assert [row["broker_id"] for row in parsed([record], key=b"5")] == [5]
    assert [row["broker_id"] for row in parsed([record], headers={"broker_id": "6"})] == [6]


def test_a_known_zone_lets_the_line_s_own_time_count() -> None:
    record = json.dumps({"@timestamp": "2026-11-20T10:00:09Z", "log": STOCK}).encode()
    (row,) = parsed([record], IngestSection(time_zone="UTC"))
    assert row["event_time"] == datetime(2026, 11, 20, 10, 0, 0, 123_000, tzinfo=UTC)


PART = "a part of a line: "
CRI_CURE = f"CRI: {PART}let the shipper join parts, such as Fluent Bit's multiline.parser cri"
DOCKER_CURE = (
    f"docker: {PART}let the shipper join parts, such as Fluent Bit's multiline.parser docker"
)
TORN = "raise the shipper's limit of a line, and let it join parts that a runtime split"


UNREAD = [
    ("CRI, a part", "not_json", CRI_CURE, f"{ISO} stdout P {STOCK[:300]}"),
    ("CRI, the rest", "not_json", CRI_CURE, f"{ISO} stdout F {STOCK[300:]}"),
    ("CRI, another log", "not_a_request_line", None, f"{ISO} stdout F {OTHER}"),
    ("docker, a part", "not_json", DOCKER_CURE,
     json.dumps({"log": STOCK[:300], "stream": "stdout", "time": ISO})),
    ("docker, the rest", "not_json", DOCKER_CURE,
     json.dumps({"log": STOCK[300:] + "\n", "stream": "stdout", "time": ISO})),
    ("CRI by Fluent Bit", "not_json", CRI_CURE,
     json.dumps({"log": STOCK[:300], "stream": "stdout", "_p": "P", "kubernetes": POD})),
    ("Filebeat", "not_json", f"Filebeat: {PART}{TORN}",
     json.dumps({"message": STOCK[:300], "@metadata": {}})),
    ("another log by Filebeat", "not_a_request_line", "Filebeat",
     json.dumps({"message": OTHER, "@metadata": {}})),
    ("a client that writes a line into another log", "not_a_request_line",
     "log4j JSON layout: a line of kafka.server.KafkaApis",
     json.dumps({"message": COMPLETED, "loggerName": "kafka.server.KafkaApis"})),
    ("Kafka 2.7", "old_text_format", "logstash: brokers write JSON from Kafka 2.8 on",
     json.dumps({"message": COMPLETED.replace(LINE, "RequestHeader(x)"), "@version": "1"})),
    ("too many lines", "wrapped_line",
     f"CloudWatch: over {MOST_LINES} lines in one record: let the shipper send smaller batches",
     json.dumps({"logEvents": [{}] * (MOST_LINES + 1)})),
    ("an unknown layout", "not_json", CRI_CURE, f"{ISO} stdout F [x] {LINE}"),
    ("no string", "not_json", "no JSON object in 3 characters", '"' * 3),
    ("nested lists", "not_json", "nested too deeply", "[" * 9_000),
]  # fmt: skip


def test_what_is_not_read_names_the_wrapper_and_the_cure() -> None:
    rows = parsed_cases({case: text.encode() for case, *_, text in UNREAD})
    assert [(case, row["reason"], row["detail"]) for case, row in rows.items()] == [
        (case, reason, detail) for case, reason, detail, _ in UNREAD
    ]


def test_compressed_values_are_named() -> None:
    (row,) = parsed([gzip.compress(STOCK.encode())])
    assert row["reason"] == "wrapped_line"
    assert row["detail"].startswith("gzip: send values as they are")


def test_bytes_that_only_begin_like_protobuf_are_text() -> None:
    rows = parsed([b"\n" + json.dumps(ENVELOPE).encode(), b"\n\x02\x08\x01", protobuf()])
    assert [row["reason"] for row in rows] == [None, "not_json", "not_json"]


@pytest.mark.parametrize(
    ("file", "lines", "form"),
    [("otlp_logs_json", 8, "OTLP logs"), ("filelog_raw", 2, "JSON string")],
)
def test_records_of_a_real_collector_are_read(
    golden: Path, file: str, lines: int, form: str
) -> None:
    text = (golden / "collector" / f"{file}.jsonl").read_text(encoding="utf-8")
    rows = parsed(base64.b64decode(json.loads(line)["value"]) for line in text.splitlines())
    assert [row["reason"] for row in rows] == [None] * lines
    assert {(row["form"], row["broker_id"]) for row in rows} == {(f"wrapped ({form})", 1)}
    assert all(row["stated_time"].year == 2026 for row in rows)


ODD_RECORDS: list[Any] = [
    {"instant": {"epochSecond": int("9" * 4_299)}, "message": COMPLETED},
    {"instant": {"epochSecond": "9" * 9_999}, "message": COMPLETED},
    otlp(STOCK, {"intValue": "9" * 9_999}),
    otlp(STOCK, {"intValue": "--5"}, {"bytesValue": "?"}),
    {"logEvents": [None, 7, [], {"message": STOCK}]},
    # Half a surrogate pair, as a value and as a name.
    *(
        [{"log": STOCK, **odd}, ENVELOPE]
        for odd in (
            {"kubernetes": {"pod_name": "\ud800"}},
            {"fields": {"broker_id": "\ud800"}},
            {"host": {"name": "\ud800"}},
            {"@timestamp": "\ud800"},
            {"logger": "\ud800"},
        )
    ),
    [{"\ud800": STOCK}, {"message": STOCK}],
    {"ddtags": 7, "tags": [None, ":"], "host": [], "log": STOCK},
]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_odd_values_of_a_wrapper_cost_no_line_beside_it(zone: str | None) -> None:
    values = [json.dumps(each).encode() for odd in ODD_RECORDS for each in (odd, ENVELOPE)]
    rows = parsed(values, IngestSection(time_zone=zone))
    read = [row for row in rows if row["reason"] is None]
    assert {row["principal"] for row in read} == {"User:alice"}
    assert {row["source_offset"] for row in read} == {*range(len(values))}
    beside = [row["broker_id"] for row in rows if row["source_offset"] % 2]
    assert beside == [7] * len(ODD_RECORDS)
