"""How a record's value becomes lines, the formats that have none, and the field that conf names."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from quotaflow.pipelines.config import IngestSection
from quotaflow.udfs.request_log import formats, wrappers

from ...record_batches import RECORD_TIME, parsed, parsed_cases
from .test_hostile_lines import GOOD
from .test_wrappers import AT, BROKERS, ISO, LINE, MS, STOCK, S, assert_read

BOB = STOCK.replace("alice", "bob")
ENVELOPE = json.dumps({"ts": MS, "broker": 7, "r": GOOD})
OF_BOB = ENVELOPE.replace("alice", "bob")
MESSAGE, OF_BOB_IN_MESSAGE = (json.dumps({"@timestamp": ISO, "message": x}) for x in (STOCK, BOB))
HEC = json.dumps({"time": S + 0.134, "event": STOCK, "sourcetype": "kafka"})
AFTER = datetime(2026, 10, 25, 0, 30, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def shippers(golden: Path) -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in (golden / "shippers").glob("*.bin")}


def test_records_of_public_reports_are_read_or_have_a_cure(shippers: dict[str, bytes]) -> None:
    (plain,) = parsed([shippers["logstash-plain"]], brokers=BROKERS)
    assert (plain["reason"], plain["event_time"], plain["broker_id"]) == (None, AT, 1)
    (twice,) = parsed(
        [shippers["hour-that-comes-twice"]], IngestSection(time_zone="Europe/Berlin"), time=AFTER
    )
    assert twice["event_time"] == AFTER - timedelta(seconds=0.5)
    (keyed,) = parsed([shippers["bare"]], key=b"worker-3", brokers=BROKERS)
    assert (keyed["reason"], keyed["broker_id"]) == (None, None)
    assert [row["reason"] for row in parsed([shippers["ndjson"]])] == [None, None]
    named = {"ecs-template-cut": "maxStringLength", "vector-logfmt": "logfmt"}
    for case, word in named.items():
        (row,) = parsed([shippers[case]])
        assert row["reason"] == "not_json"
        assert word in row["detail"]
        assert "shipper's limit" not in row["detail"]


TWO = [
    ("NDJSON of records", f"{MESSAGE}\n{OF_BOB_IN_MESSAGE}\n"),
    ("NDJSON with CRLF and an empty line", f"{MESSAGE}\r\n\r\n{OF_BOB_IN_MESSAGE}\r\n"),
    ("NDJSON of envelopes", f"{ENVELOPE}\n{OF_BOB}"),
    ("concatenated envelopes", ENVELOPE + OF_BOB),
    ("concatenated records", MESSAGE + OF_BOB_IN_MESSAGE),
    ("a byte order mark before them", f"\ufeff{MESSAGE}\n{OF_BOB_IN_MESSAGE}"),
    ("Splunk's batch", HEC + HEC.replace("alice", "bob")),
    ("RFC 7464", f"\x1e{MESSAGE}\n\x1e{OF_BOB_IN_MESSAGE}\n"),
    ("JsonLayout, complete", f",{MESSAGE}\n,{OF_BOB_IN_MESSAGE}"),
    ("strings in a row", f"{json.dumps(MESSAGE)}\n{json.dumps(OF_BOB_IN_MESSAGE)}"),
    ("indented", json.dumps(json.loads(MESSAGE), indent=1) + "\n" + OF_BOB_IN_MESSAGE),
    ("a list", f"[{MESSAGE},{OF_BOB_IN_MESSAGE}]"),
    ("a list of envelopes", f"[{ENVELOPE},{OF_BOB}]"),
    ("a list over several lines", f"[\n{MESSAGE}\n, {OF_BOB_IN_MESSAGE}\n]"),
    ("lines of text", f"{STOCK}\n{BOB}\n".replace(",123", ",134Z")),
    ("lines of CRI", f"{ISO} stdout F {STOCK}\n{ISO} stdout F {BOB}"),
    ("records of Azure", f'{{"records":[{MESSAGE},{OF_BOB_IN_MESSAGE}]}}'),
    ("two batches in a row",
     "".join(json.dumps({"logGroup": "k", "logEvents": [{"timestamp": MS, "message": each}]})
             for each in (STOCK, BOB))),
    ("Loki's push",
     json.dumps({"streams": [{"stream": {"pod": "kafka-1"}, "values": [
         [f"{MS}000000", STOCK], [f"{MS}000000", BOB]]}]})),
]  # fmt: skip


def test_each_framing_gives_a_row_for_each_line() -> None:
    read: dict[str, list[tuple[Any, ...]]] = {case: [] for case, _ in TWO}
    for row in parsed(text.encode() for _, text in TWO):
        seen = (row["reason"], row["principal"], row["event_time"], row["source_line"])
        read[TWO[row["source_offset"]][0]].append(seen)
    both = [(None, "User:alice", AT, 0), (None, "User:bob", AT, 1)]
    assert read == {case: both for case, _ in TWO}


def test_lines_of_text_with_bare_requests_have_the_time_of_the_record() -> None:
    rows = parsed([f"{LINE}\n{LINE}".encode()])
    assert [row["event_time"] for row in rows] == [RECORD_TIME] * 2


def test_a_torn_line_of_a_batch_costs_itself() -> None:
    whole = (MESSAGE, ENVELOPE, STOCK)
    rows = parsed(f"{line}\n{line[:200]}\n{line}".encode() for line in whole)
    assert [row["reason"] for row in rows] == [None, "not_json", None] * len(whole)


@pytest.mark.parametrize(
    "text",
    [
        f"[2026-11-20 10:00:00,123] ERROR no such client: x\n{LINE}",
        f"[2026-11-20 10:00:00,123] ERROR x\n{LINE}\n{LINE}",
        f"2026-11-20T10:00:00.134Z INFO {LINE}",
        f"2026-11-20T10:00:00.134Z a client said {LINE}",
        f"kafka-1 {LINE}",
    ],
)
def test_a_line_that_a_client_writes_into_another_log_is_none(text: str) -> None:
    (row,) = parsed([text.encode()])
    assert row["reason"] in {"not_json", "not_a_request_line"}


BEFORE = [
    ("Logstash's plain", 1, f"{ISO} {{name=kafka-1}} {ENVELOPE}"),
    ("more of the host", 3, f"{ISO} {{name=kafka-3, ip=[10.0.0.3]}} {LINE}"),
    ("a host that is a text", 3, f"{ISO} kafka-3 {LINE}"),
    ("a host that is not there", None, f"{ISO} %{{host}} {LINE}"),
    ("Kafka's layout behind it", 3, f"{ISO} {{name=kafka-3}} {STOCK}"),
    ("a record behind it", 3, f"{{name=kafka-3}} {MESSAGE}"),
    ("a tab", 3, f"{ISO}\tkafka-3\t{LINE}"),
    ("RFC 3164 without a tag", 3, f"<15>Nov 20 10:00:00 kafka-3 {MESSAGE}"),
    ("CEE", 3, f"<15>Nov 20 10:00:00 kafka-3 kafka[4711]: @cee: {MESSAGE}"),
]


def test_json_behind_a_time_and_a_host_is_read() -> None:
    rows = assert_read({case: text for case, _, text in BEFORE})
    expected = [(case, 7 if "plain" in case else broker) for case, broker, _ in BEFORE]
    assert [(case, row["broker_id"]) for case, row in rows.items()] == expected


SYSLOG_NG = {"PROGRAM": "kafka", "PRIORITY": "debug", "PID": "4711", "MESSAGE": STOCK,
             "HOST": "kafka-3", "FACILITY": "user", "DATE": "Nov 20 10:00:00"}  # fmt: skip
SYSLOGS: list[tuple[str, str, dict[str, Any]]] = [
    ("ISODATE", "syslog-ng", SYSLOG_NG | {"ISODATE": "2026-11-20T10:00:00.134+00:00"}),
    ("UNIXTIME", "syslog-ng", SYSLOG_NG | {"UNIXTIME": f"{S}.134"}),
    ("FULLHOST", "syslog-ng",
     {"MESSAGE": STOCK, "PROGRAM": "kafka", "FULLHOST": "kafka-3.k.svc", "S_ISODATE": ISO}),
    ("rsyslog", "rsyslog",
     {"msg": STOCK, "syslogtag": "kafka:", "hostname": "kafka-3", "timereported": ISO}),
]  # fmt: skip


def test_host_and_time_of_syslog_daemons_are_read() -> None:
    rows = assert_read({case: json.dumps(record) for case, _, record in SYSLOGS})
    assert [(case, row["form"], row["broker_id"]) for case, row in rows.items()] == [
        (case, f"wrapped ({kind})", 3) for case, kind, _ in SYSLOGS
    ]


ESCAPED = json.dumps(STOCK)
IN_XML = STOCK.replace('"', "&quot;")
DOUBLED = STOCK.replace('"', '""')
BYTES = ESCAPED.encode()
FORMATS: list[tuple[str, str | bytes]] = [
    ("logfmt", f"ts={ISO} level=debug msg={ESCAPED}"),
    ("logfmt", f"level=debug msg={ESCAPED[:300]}"),
    ("logfmt", json.dumps({"message": f"ts={ISO} level=debug msg={ESCAPED}"})),
    ("CSV", f'{ISO},kafka-1,"{DOUBLED}"'),
    ("CSV", f"{ISO};kafka-1;{ESCAPED}"),
    ("CSV", f'"{DOUBLED}","kafka-1"'),
    ("InfluxDB line protocol", f"tail,host=kafka-1,path=/l value={ESCAPED} {MS}000000"),
    ("InfluxDB line protocol", f"tail,path=/l\\ m value={ESCAPED} {MS}000000"),
    ("InfluxDB line protocol", f"kafka size=3i,line={ESCAPED}"),
    (
        "XML",
        f"<Event level='DEBUG'>\n<Message>{IN_XML}</Message></Event>",
    ),
    ("XML", f"<?xml version='1.0'?><m>{IN_XML}</m>"),
    ("YAML", f"---\ninstant:\n  epochSecond: {S}\nmessage: {ESCAPED}\n"),
    ("YAML", f'"@timestamp": "{ISO}"\n"message": {ESCAPED}\n'),
    ("LTSV", f"time:{ISO}\thost:kafka-1\tmessage:{ESCAPED}"),
    ("Ruby's hash", f'{{"message"=>{ESCAPED}}}'),
    ("Connect's Struct", f"Struct{{message={ESCAPED}}}"),
    ("CEF", f"CEF:0|Kafka|broker|4|1|line|1|msg={ESCAPED}"),
    ("msgpack", b"\x82\xa7message\xda\x02\x00" + BYTES),
    ("msgpack", b"\x93\xa5kafka\xcej\xff\x00\x00\x81\xa3log\xda\x02\x00" + BYTES),
    ("CBOR", b"\xa1gmessagey\x02\x00" + BYTES),
    ("Java serialization", b"\xac\xed\x00\x05t\x02\x00" + BYTES),
    ("cut by JsonTemplateLayout", json.dumps({"@timestamp": ISO, "message": STOCK[:300] + "…"})),
    ("cut by the Datadog Agent", json.dumps({"message": STOCK[:300] + "...TRUNCATED..."})),
    ("cut by PatternLayout", f"{STOCK[:300]}... (kafka.request.logger)"),
]


def test_a_format_that_is_not_read_is_named_with_its_cure() -> None:
    cases = {str(n): x if isinstance(x, bytes) else x.encode() for n, (_, x) in enumerate(FORMATS)}
    rows = parsed_cases(cases)
    names = {each.name for each, _ in (*formats.BINARY, *formats.CUT, *formats.TEXTS)}
    seen = [
        (row["reason"], next((n for n in names if f"{n}: " in (row["detail"] or "")), None))
        for row in rows.values()
    ]
    assert seen == [("not_json", name) for name, _ in FORMATS]


@pytest.mark.parametrize("magic", [b"\x04\x22\x4d\x18", b"\x82SNAPPY\0", b"\x78\x9c\xcb"])
def test_other_codecs_are_named_too(magic: bytes) -> None:
    (row,) = parsed([magic + bytes(range(32))])
    assert row["reason"] == "wrapped_line"
    assert "compression.type" in row["detail"]


@pytest.fixture(scope="module")
def real_lines(golden: Path) -> list[str]:
    files = sorted((golden / "lines").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()[:40]]
    return lines + [f"[x] DEBUG Completed request:{line} (kafka.request.logger)" for line in lines]


@given(st.data())
def test_no_part_of_a_real_line_has_the_name_of_another_format(
    real_lines: list[str], data: st.DataObject
) -> None:
    line = data.draw(st.sampled_from(real_lines))
    start = data.draw(st.integers(0, len(line)))
    part = line[start : data.draw(st.integers(start, len(line)))].strip()
    binary = formats.compressed(part.encode()), formats.binary(part.encode())
    assert (formats.of_text(part), *binary) == (None, None, None)


@pytest.mark.faults
def test_no_real_line_that_begins_or_ends_anywhere_has_such_a_name(real_lines: list[str]) -> None:
    for line in {line[:30]: line for line in real_lines}.values():
        for at in range(len(line)):
            assert formats.of_text(line[at:]) is None, line[at : at + 80]
            assert formats.of_text(line[:at]) is None, line[max(0, at - 80) : at]


LINE_FIELDS: list[tuple[str, Any]] = [
    ("_raw", {"_time": S + 0.134, "_raw": STOCK}),
    ("Message", {"EventTime": ISO, "Message": STOCK}),
    ("fields.value", {"timestamp": S + 0.134, "fields": {"value": STOCK}, "name": "tail"}),
    ("data", {"specversion": "1.0", "time": ISO, "data": STOCK}),
    ("payload.raw", {"@timestamp": ISO, "payload": {"raw": STOCK}}),
    ("payload.raw", {"@timestamp": ISO, "payload.raw": STOCK}),
    ("rows.raw", {"@timestamp": ISO, "rows": [{"raw": STOCK}]}),
    ("raw", {"@timestamp": ISO, "raw": ENVELOPE}),
    ("fields.value",
     {"metrics": [{"timestamp": S + 0.134, "fields": {"value": STOCK}, "name": "tail"}]}),
]  # fmt: skip


def requests(record: Any, line_field: str | None) -> list[wrappers.Unwrapped]:
    text = json.dumps(record)
    options = IngestSection(line_field=line_field).line_options
    return wrappers.unwrap(text.encode(), text, options)


@pytest.mark.parametrize(("field", "record"), LINE_FIELDS)
def test_conf_names_the_field_of_a_shape_that_is_not_known(field: str, record: Any) -> None:
    (request,) = requests(record, field)
    assert isinstance(request, wrappers.Request)
    assert request.fields == GOOD
    assert {type(each) for each in requests(record, None)} == {wrappers.NoRequestError}


def test_of_several_lines_that_of_the_named_field_counts() -> None:
    record = {"raw": STOCK, "message": BOB}
    principals = [
        [each.fields["principal"] for each in requests(record, field) if hasattr(each, "fields")]
        for field in (None, "raw")
    ]
    assert principals == [["User:bob"], ["User:alice"]]


def test_time_and_broker_of_such_a_record_are_read_too() -> None:
    record = {"@timestamp": ISO, "payload": {"raw": STOCK}, "host": "kafka-3"}
    conf = IngestSection(line_field="payload.raw")
    (row,) = parsed([json.dumps(record).encode()], conf, brokers=BROKERS)
    assert (row["reason"], row["event_time"], row["broker_id"]) == (None, AT, 3)


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("$.payload.raw", "write payload.raw"),
        ("payload['raw']", "write payload.raw"),
        ("rows[0].raw", "write rows.raw"),
        (".raw", "write raw"),
        ("payload/raw", "write payload.raw"),
        ("", "such as payload.raw"),
        ("$", "such as payload.raw"),
    ],
)
def test_a_path_of_another_language_is_refused_with_the_right_one(field: str, hint: str) -> None:
    with pytest.raises(ValidationError, match=hint):
        IngestSection(line_field=field)
