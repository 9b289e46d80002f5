"""Request-log lines to rows, against a plain JSON reader and in tables of good and bad lines."""

import json
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest

from quotaflow.pipelines.config import IngestSection
from quotaflow.schemas import events

from ...record_batches import RECORD_TIME, parsed, parsed_cases
from ...rows import Row

SEVEN = {"broker_id": "7"}


def line(api: str = "METADATA", version: int = 13, **fields: Any) -> dict[str, Any]:
    header = {
        "requestApiKey": 3,
        "requestApiVersion": version,
        "correlationId": 1,
        "clientId": "app",
        "requestApiKeyName": api,
    }
    whole = {"isForwarded": False, "requestHeader": header, "request": {}, "response": {}}
    return whole | {"principal": "User:alice", "connection": "h:1-10.0.0.5:4711-0-1"} | fields


def produced(size: int) -> dict[str, Any]:
    return {"name": "t", "partitionData": [{"index": 0, "recordsSizeInBytes": size}]}


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def flat(topics: Any, partitions: str, index: str) -> list[tuple[str | None, int]]:
    return [
        (topic.get("topicId") or topic.get("name") or topic.get("topic"), part[index])
        for topic in topics or []
        for part in topic[partitions]
    ]


def named(part: Row) -> tuple[str, int]:
    return part["topic_id"] or part["topic"], part["partition"]


def golden_lines(golden: Path) -> list[tuple[bytes, dict[str, Any]]]:
    files = sorted((golden / "lines").glob("*.jsonl"))
    texts = [text for file in files for text in file.read_bytes().splitlines()]
    return [(text, json.loads(text)) for text in texts]


def test_every_golden_line_is_what_a_plain_json_reader_says(golden: Path) -> None:
    pairs = golden_lines(golden)
    rows = parsed([text for text, _ in pairs], headers=SEVEN)
    assert len(rows) == len(pairs) > 300
    for row, (_, whole) in zip(rows, pairs, strict=True):
        assert_is_what_json_says(row, whole)
        assert row["broker_id"] == whole.get("broker", 7)
        if "ts" in whole:
            assert row["event_time"].astimezone(UTC).timestamp() * 1000 == pytest.approx(
                min(whole["ts"], (RECORD_TIME + timedelta(seconds=60)).timestamp() * 1000)
            )


def assert_is_what_json_says(row: Row, whole: dict[str, Any]) -> None:
    """A row against its line, read by a plain JSON reader, with or without its envelope."""
    fields = whole.get("r", whole)
    header, request, response = fields["requestHeader"], fields["request"], fields["response"]
    assert row["reason"] is None
    assert row["api"] == header["requestApiKeyName"]
    assert row["api_version"] == header["requestApiVersion"]
    assert row["client_id"] == header["clientId"]
    assert row["principal"] == fields["principal"]
    assert row["total_time_ms"] == fields["totalTimeMs"]
    assert row["throttle_time_ms"] == fields["throttleTimeMs"]
    assert row["error_code"] == (response or {}).get("errorCode")
    assert row["client_software_name"] == fields["clientInformation"]["softwareName"]
    address, port = fields["connection"].split("-")[1].rsplit(":", 1)
    assert (row["client_address"], row["client_port"]) == (address, int(port))
    if row["body"]:
        assert json.loads(row["body"]) == {"request": request, "response": response}
    if row["api"] == "FETCH":
        assert_fetch(row, request, response)
    if row["api"] == "PRODUCE":
        assert_produce(row, request)


def assert_fetch(row: Row, request: dict[str, Any], response: dict[str, Any]) -> None:
    requested = flat(request["topics"], "partitions", "partition")
    answered = flat(response["responses"], "partitions", "partitionIndex")
    order = requested + [key for key in answered if key not in requested]
    assert [named(part) for part in row["partitions"]] == order
    assert [named(p) for p in row["partitions"] if p["in_request"]] == requested
    assert {named(p) for p in row["partitions"] if p["in_response"]} == set(answered)
    sizes = {
        (topic["topicId"], part["partitionIndex"]): part["recordsSizeInBytes"]
        for topic in response["responses"]
        for part in topic["partitions"]
    }
    assert {named(p): p["bytes"] for p in row["partitions"] if p["in_response"]} == sizes
    assert row["max_bytes"] == request["maxBytes"]
    assert row["session_epoch"] == request["sessionEpoch"]
    assert row["response_session_id"] == response["sessionId"]
    assert row["rack_id"] == (request["rackId"] or None)
    assert row["replica_id"] == (request.get("replicaState") or {}).get("replicaId")


def assert_produce(row: Row, request: dict[str, Any]) -> None:
    requested = flat(request["topicData"], "partitionData", "index")
    assert [named(part) for part in row["partitions"]] == requested
    sizes = [p["recordsSizeInBytes"] for t in request["topicData"] for p in t["partitionData"]]
    assert [part["bytes"] for part in row["partitions"]] == sizes
    assert row["acks"] == request["acks"]
    assert row["transactional_id"] == request["transactionalId"]


ENVELOPE = {"ts": 1_795_226_400_000, "broker": 3, "r": line()}


FORMS = [
    ("the envelope names its broker", encoded(ENVELOPE), 3),
    ("a shipper may reorder the envelope", encoded({"broker": 3, "r": line(), "ts": 1}), 3),
    ("a bare line takes the record's header", encoded(line()), 7),
    (
        "the stock layout",
        b"[2026-11-21 02:00:00,123] DEBUG Completed request:"
        + encoded(line())
        + b" (kafka.request.logger)\n",
        7,
    ),
]


def test_all_three_forms_are_read() -> None:
    rows = parsed_cases({case: text for case, text, _ in FORMS}, headers=SEVEN)
    seen = [(case, row["reason"], row["api"], row["broker_id"]) for case, row in rows.items()]
    assert seen == [(case, None, "METADATA", broker_id) for case, _, broker_id in FORMS]


def test_the_key_names_the_broker_when_no_header_does() -> None:
    (row,) = parsed([encoded(line())], key=b"9")
    assert row["broker_id"] == 9


UNREAD: list[tuple[str, bytes | None, str]] = [
    ("no value", None, "empty_line"),
    ("empty value", b"", "empty_line"),
    ("truncated", b'{"ts":1,"broker":1,"r":{"isFor', "not_json"),
    ("the end of another behind", encoded(ENVELOPE) + b',"a":1}}', "not_json"),
    ("a bracket too many", encoded(ENVELOPE) + b" }", "not_json"),
    ("a lost quote", encoded(line(api="FETCH")).replace(b'"FETCH"', b'"FETCH\0'), "not_json"),
    ("plain text", b"hello", "not_json"),
    ("not UTF-8", b"\xff\xfe\x00", "not_json"),
    ("JSON of another shape", b'{"level":"INFO"}', "not_a_request_line"),
    ("an array", b"[1,2]", "not_json"),
    (
        "FETCH whose topics are no list",
        encoded(line(api="FETCH", request={"topics": "all"})),
        "unexpected_shape",
    ),
    *(
        (
            f"a throttle of {ms} ms",
            encoded(line(localTimeMs=1.5, throttleTimeMs=ms)),
            "unexpected_shape",
        )
        for ms in (1e300, -1e300, float("nan"), float("inf"))
    ),
    (
        "records of exabytes",
        encoded(line("PRODUCE", request={"topicData": [produced(2**62)]})),
        "unexpected_shape",
    ),
    ("over the bound", encoded(line() | {"x": "y" * 2_000}), "line_too_long"),
]


def test_what_is_no_request_line_has_a_reason() -> None:
    values = {case: text for case, text, _ in UNREAD}
    rows = parsed_cases(values, IngestSection(max_line_bytes=1_500))
    assert {case: row["reason"] for case, row in rows.items()} == {
        case: reason for case, _, reason in UNREAD
    }


def test_deep_nesting_is_no_json() -> None:
    (row,) = parsed([b'{"r":' * 5_000 + b"1" + b"}" * 5_000])
    assert row["reason"] == "not_json"


RAFT = {"topicId": events.RAFT_TOPIC_ID}
FETCH_OF_RAFT = {"api": "FETCH", "request": {"topics": [RAFT]}}
AT_CONTROLLER = {"listener": "CONTROLLER"}
SHIPPER = {"requestHeader": line()["requestHeader"] | {"clientId": "quotaflow-shipper"}}


LEFT_OUT = [
    ("the controller's copy", {"isForwarded": True}, "forwarded_copy"),
    ("a raft request", {"api": "VOTE"} | AT_CONTROLLER, "raft"),
    ("a raft request that a client sends a broker", {"api": "VOTE"}, None),
    ("a fetch of the metadata log", FETCH_OF_RAFT | AT_CONTROLLER, "raft"),
    ("a client's fetch of the metadata log", FETCH_OF_RAFT, None),
    (
        "a fetch of the metadata log and others",
        {"api": "FETCH", "request": {"topics": [RAFT, {"topicId": "other"}]}} | AT_CONTROLLER,
        None,
    ),
    ("our own shipper", SHIPPER | {"principal": "User:shipper"}, "own_shipper"),
    ("somebody who calls itself our shipper", SHIPPER, None),
    ("other requests of that listener stay", {"listener": "CONTROLLER"}, None),
]


def test_what_is_left_out_says_why() -> None:
    rows = parsed_cases({case: encoded(line(**given)) for case, given, _ in LEFT_OUT})
    assert [(case, row["reason"], row["left_out"]) for case, row in rows.items()] == [
        (case, None, left_out) for case, _, left_out in LEFT_OUT
    ]


def test_unknown_apis_and_versions_keep_header_and_timings() -> None:
    nameless = line(totalTimeMs=1.5)
    nameless["requestHeader"] = {"requestApiKey": 999, "requestApiVersion": 0}
    later = line(api="FETCH", version=99, request={"maxBytes": 5, "topics": []}, response={})
    rows = parsed([encoded(nameless), encoded(line(api="SASL_HANDSHAKE")), encoded(later)])
    assert [row["api"] for row in rows] == ["UNKNOWN_999", "SASL_HANDSHAKE", "FETCH"]
    assert [row["body"] for row in rows] == [None, None, None]
    assert (rows[0]["total_time_ms"], rows[2]["max_bytes"]) == (1.5, 5)


def sampled(api: str = "PRODUCE", **others: Any) -> list[bytes]:
    """Lines that differ only in their connections."""
    given = [line(api, connection=f"b:1-c:{n}-0-{n}", **others) for n in range(400)]
    return [encoded(each) for each in given]


def test_a_line_that_a_broker_sampled_has_its_weight_also_where_ingest_samples_again() -> None:
    ingest = IngestSection(sampling={"PRODUCE": 0.5})
    plain = sampled(request={"acks": 1}, response={})
    weighed = [b'{"ts":1,"weight":10,"r":' + text + b"}" for text in plain]
    kept = [row["weight"] for row in parsed(weighed + plain, ingest) if row["left_out"] is None]
    assert set(kept) == {20.0, 2.0}
    assert {row["weight"] for row in parsed(weighed)} == {10.0}


def test_a_weight_that_cannot_be_right_counts_as_one_and_is_doubtful() -> None:
    text = encoded({"ts": 1, "weight": "WEIGHT", "r": line()})
    weights = ("0", "-3", "1001", "2.5", '"x"', "null", "1e400")
    rows = parsed_cases({each: text.replace(b'"WEIGHT"', each.encode()) for each in weights})
    assert {each: (row["weight"], row["unreadable_numbers"]) for each, row in rows.items()} == {
        each: (1.0, each != "null") for each in weights
    }


def test_a_sampled_line_stands_for_those_left_out_and_is_the_same_one_each_time() -> None:
    ingest = IngestSection(sampling={"PRODUCE": 0.1, "HEARTBEAT": 0.5})
    plain = sampled(request={"acks": 1}, response={})
    sampling = {
        "PRODUCE": plain,
        "HEARTBEAT": sampled("HEARTBEAT"),
        "throttled": sampled(request={"acks": 1}, response={}, throttleTimeMs=5),
        "transactional": sampled(request={"transactionalId": "t"}, response={}),
        "METADATA": sampled("METADATA"),
    }
    rows = parsed([text for texts in sampling.values() for text in texts], ingest)
    parts = {name: rows[n * 400 : (n + 1) * 400] for n, name in enumerate(sampling)}
    kept = {name: [r for r in part if r["left_out"] is None] for name, part in parts.items()}
    assert {r["left_out"] for r in rows} == {None, "sampled"}
    assert 20 < len(kept["PRODUCE"]) < 65
    assert 150 < len(kept["HEARTBEAT"]) < 250
    weights = {name: {r["weight"] for r in part} for name, part in kept.items()}
    assert weights["PRODUCE"] == {10.0}
    assert weights["HEARTBEAT"] == {2.0}
    for name in ("throttled", "transactional", "METADATA"):
        assert (len(kept[name]), weights[name]) == (400, {1.0})
    for others in ({"principal": "User:bob"}, {"clientInformation": {"softwareName": "x"}}):
        again = parsed([b"", *sampled(request={"acks": 0}, response={}, **others)], ingest)
        assert [r["left_out"] for r in again[1:]] == [r["left_out"] for r in parts["PRODUCE"]]


def test_a_clock_ahead_is_bounded_by_the_record_plus_a_bound() -> None:
    texts = [encoded(ENVELOPE | {"ts": ts}) for ts in (0, 10**18, -1, 4_000_000_000_000)]
    times = [
        row["event_time"].astimezone(UTC)
        for row in parsed(texts, IngestSection(max_clock_skew_s=5))
    ]
    ahead = RECORD_TIME + timedelta(seconds=5)
    assert times == [RECORD_TIME, RECORD_TIME, RECORD_TIME, ahead]


def test_secrets_in_bodies_are_hidden_and_long_bodies_are_left_out() -> None:
    configs = [
        {"name": "sasl.jaas.config", "configOperation": 0, "value": 'a "quoted" secret'},
        {"name": "retention.ms", "configOperation": 0, "value": "5"},
    ]
    altered = line(api="INCREMENTAL_ALTER_CONFIGS", request={"resources": [{"configs": configs}]})
    long = line(api="METADATA", request={"topics": [{"name": "t" * 3_000}]})
    rows = parsed([encoded(altered), encoded(long)], IngestSection(max_body_bytes=1_000))
    kept = json.loads(rows[0]["body"])["request"]["resources"][0]["configs"]
    assert [config["value"] for config in kept] == ["[hidden]", "5"]
    assert json.loads(rows[1]["body"])["omitted_bytes"] > 3_000


def test_a_long_secret_in_escapes_is_hidden_too() -> None:
    """A broker hides no configs of CREATE_TOPICS, and logs refused requests, too."""
    config = {"name": "x.secret", "value": "\x01" * 32_767}
    created = line(api="CREATE_TOPICS", request={"topics": [{"name": "t", "configs": [config]}]})
    (row,) = parsed([encoded(created)], IngestSection(max_body_bytes=262_144))
    (kept,) = json.loads(row["body"])["request"]["topics"][0]["configs"]
    assert kept["value"] == "[hidden]"


def test_bodies_of_administrative_requests_are_kept_but_none_with_credentials() -> None:
    named = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "offset": 7}]}]}
    kept = ("DELETE_RECORDS", "CREATE_ACLS", "DELETE_ACLS", "DELETE_GROUPS", "OFFSET_DELETE")
    secret = ("ALTER_USER_SCRAM_CREDENTIALS", "SASL_AUTHENTICATE", "CREATE_DELEGATION_TOKEN")
    secrets = ("TOKEN", "SASL", "CREDENTIAL")
    assert not [api for api in events.BODY_APIS if any(part in api for part in secrets)]
    lines = [encoded(line(api=api, request=named)) for api in (*kept, *secret)]
    bodies = {row["api"]: row["body"] for row in parsed(lines)}
    assert [json.loads(bodies[api])["request"] for api in kept] == [named] * len(kept)
    assert [bodies[api] for api in secret] == [None] * len(secret)


def test_conf_names_apis_whose_bodies_are_not_kept(golden: Path) -> None:
    texts = (golden / "lines" / "groups.jsonl").read_bytes().splitlines()
    kept = parsed(texts)
    apis = {row["api"] for row in kept}
    assert apis >= {"SHARE_FETCH", "SHARE_ACKNOWLEDGE", "SHARE_GROUP_HEARTBEAT"}
    assert apis >= {"HEARTBEAT", "SYNC_GROUP", "LEAVE_GROUP"}
    assert all(json.loads(row["body"])["request"]["groupId"] for row in kept)
    # Every API with a body can be named, not these alone.
    for without in (sorted(apis), list(events.BODY_APIS), ["HEARTBEAT"]):
        ingest = IngestSection.model_validate({"without_body": without})
        expected = [r | {"body": None} if r["api"] in without else r for r in kept]
        assert parsed(texts, ingest) == expected


def test_empty_lists_of_conf_leave_out_no_line() -> None:
    ingest = IngestSection(shippers=[], shipper_principals=[], controller_listeners=[])
    lines = [SHIPPER | {"principal": "User:shipper"}, {"api": "VOTE"} | AT_CONTROLLER]
    rows = parsed([encoded(line(**given)) for given in lines], ingest)
    assert [(row["reason"], row["left_out"]) for row in rows] == [(None, None)] * 2


def test_a_response_may_hold_partitions_its_request_did_not_list() -> None:
    request = {"topics": [{"topicId": "a", "partitions": [{"partition": 0}, {"partition": 1}]}]}
    answers = [{"partitionIndex": 2, "recordsSizeInBytes": 9}, {"partitionIndex": 1}]
    response = {"responses": [{"topicId": "a", "partitions": answers}]}
    (row,) = parsed([encoded(line(api="FETCH", request=request, response=response))])
    seen = [
        (p["partition"], p["in_request"], p["in_response"], p["bytes"]) for p in row["partitions"]
    ]
    assert seen == [(0, True, False, None), (1, True, True, None), (2, False, True, 9)]


PRODUCERS = [
    (
        "handed out",
        "INIT_PRODUCER_ID",
        {"transactionalId": "t", "producerId": -1, "producerEpoch": -1},
        {"errorCode": 0, "producerId": 5, "producerEpoch": 0},
        ("t", 5, 0),
    ),
    (
        "coordinator still loading",
        "INIT_PRODUCER_ID",
        {"transactionalId": None, "producerId": -1},
        {"errorCode": 14, "producerId": -1, "producerEpoch": 0},
        (None, None, None),
    ),
    (
        "version 3 and below",
        "ADD_PARTITIONS_TO_TXN",
        {"v3AndBelowTransactionalId": "t", "v3AndBelowProducerId": 6, "v3AndBelowProducerEpoch": 2},
        {},
        ("t", 6, 2),
    ),
    (
        "version 5 bumps the epoch",
        "END_TXN",
        {"transactionalId": "t", "producerId": 7, "producerEpoch": 1},
        {"errorCode": 0, "producerId": 7, "producerEpoch": 2},
        ("t", 7, 2),
    ),
    ("acks 0", "PRODUCE", {"acks": 0, "topicData": []}, None, (None, None, None)),
]


def test_producer_ids() -> None:
    rows = parsed_cases(
        {
            case: encoded(line(api=api, request=request, response=response))
            for case, api, request, response, _ in PRODUCERS
        }
    )
    names = ("transactional_id", "producer_id", "producer_epoch")
    assert [(case, tuple(row[name] for name in names)) for case, row in rows.items()] == [
        (case, producer) for case, *_, producer in PRODUCERS
    ]


CONNECTIONS = [
    ("Kafka 4", "127.0.0.1:9092-10.1.2.3:51666-0-2", "10.1.2.3:51666"),
    ("Kafka 3", "127.0.0.1:9092-10.1.2.3:51666-2", "10.1.2.3:51666"),
    ("IPv6", "0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:51000-3-4", "0:0:0:0:0:0:0:1:51000"),
    ("IPv6 of Kafka 3", "0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:51000-4", "0:0:0:0:0:0:0:1:51000"),
    (
        "zones with hyphens",
        "fe80:0:0:0:1:2:3:4%br-lan:9092-fe80:0:0:0:5:6:7:8%br-1a2b:53412-0-7",
        "fe80:0:0:0:5:6:7:8%br-1a2b:53412",
    ),
]


def test_a_connection_id_names_the_client_in_every_release() -> None:
    rows = parsed_cases({case: encoded(line(connection=id_)) for case, id_, _ in CONNECTIONS})
    clients = {case: f"{row['client_address']}:{row['client_port']}" for case, row in rows.items()}
    assert clients == {case: client for case, _, client in CONNECTIONS}
