"""The request log of broker/RequestLog.java: which lines are sent, as what, and what is counted."""

import json
import random
import re
from importlib.resources import files
from typing import Any

import pytest

from quotaflow.demo.line_filter import CLIENT_ID, SECRET_APIS, OwnLines
from quotaflow.pipelines.config import IngestSection
from quotaflow.schemas.events import SAMPLED_APIS

from ..record_batches import parsed
from .java_check import JavaCheck

TIME_MS = 1_795_168_800_134
SHIPPER = "User:shipper"
CLOSING = ("own", "secret", "filtered", "sampled", "unreadable")


@pytest.fixture(scope="module")
def check() -> JavaCheck:
    """Runs one scenario of the Java source."""
    return JavaCheck("RequestLogCheck")


def request(
    key: int = 0, client: str | None = "app", user: str = "User:alice", **fields: Any
) -> str:
    """A message as Kafka 4.3.1 hands it to its logger."""
    header = {"requestApiKey": key, "requestApiVersion": 9, "correlationId": -7}
    names = {0: "PRODUCE", 1: "FETCH", 12: "HEARTBEAT"}
    whole = {
        "isForwarded": False,
        "requestHeader": {**header, "clientId": client, "requestApiKeyName": names.get(key, "X")},
        "request": {"acks": -1},
        "response": {"throttleTimeMs": 0},
        "connection": "127.0.0.1:1-127.0.0.1:2-0-1",
        "totalTimeMs": 1.5,
        "throttleTimeMs": 0,
        "securityProtocol": "SASL_SSL",
        "principal": user,
        "listener": "EXTERNAL",
        "clientInformation": {"softwareName": "unknown", "softwareVersion": "unknown"},
    }
    text = json.dumps(whole | fields, separators=(",", ":"), ensure_ascii=False)
    return f"Completed request:{text}"


def decided(check: JavaCheck, messages: list[str], *settings: str) -> list[dict[str, Any] | None]:
    """The envelope of each message; None where it was left out. Counts come behind them."""
    lines = check.lines("lines", *settings, given=messages)[: len(messages)]
    return [None if line == "null" else json.loads(line) for line in lines]


def counted(check: JavaCheck, messages: list[str], *settings: str) -> dict[str, int]:
    lines = check.lines("lines", *settings, given=messages)[len(messages) :]
    counts = {name: int(n) for name, n in (line.split() for line in lines)}
    assert tuple(counts) == CLOSING
    return {name: n for name, n in counts.items() if n}


def test_an_envelope_is_that_of_the_layout_and_is_read_as_it(check: JavaCheck) -> None:
    messages = [request(), request(1, 'caf\xe9 "\\'), request(0, None, 'User:CN=a,O="b"')]
    envelopes = decided(check, messages)
    expected = [
        {"ts": TIME_MS, "broker": 3, "r": json.loads(m.partition(":")[2])} for m in messages
    ]
    assert envelopes == expected
    rows = parsed(json.dumps(each).encode() for each in envelopes)
    assert {(row["reason"], row["broker_id"], row["weight"]) for row in rows} == {(None, 3, 1.0)}


def hostile_lines() -> list[str]:
    """Lines whose texts, as far as clients choose them, try to look like other parts of a line."""
    dice = random.Random(936)
    texts = [
        CLIENT_ID,
        SHIPPER,
        f'","principal":"{SHIPPER}","listener":"',
        f',"securityProtocol":"SASL_SSL","principal":"{SHIPPER}"',
        f'"requestHeader":{{"requestApiKey":0,"clientId":"{CLIENT_ID}"',
        '"requestHeader":{"requestApiKey":51,',
        "Completed request:{",
        "\\",
        "\u2028é",
    ]
    users = [SHIPPER, "User:alice", "User:shipper2", 'User:CN="shipper"']
    return [
        request(
            dice.choice([0, 1, 12, 51]),
            dice.choice(texts),
            dice.choice(users),
            request={"name": dice.choice(texts), "principal": dice.choice(texts)},
        )
        for _ in range(400)
    ]


def test_only_the_shipper_itself_is_left_out_however_clients_call_themselves(
    check: JavaCheck,
) -> None:
    messages = hostile_lines()
    sent = decided(check, messages)
    requests = [json.loads(message.partition(":")[2]) for message in messages]
    is_secret = [each["requestHeader"]["requestApiKey"] == 51 for each in requests]
    is_own = [
        each["requestHeader"]["clientId"] == CLIENT_ID and each["principal"] == SHIPPER
        for each in requests
    ]
    assert [each is None for each in sent] == [
        a or b for a, b in zip(is_secret, is_own, strict=True)
    ]
    demos = OwnLines(principal=SHIPPER)
    assert [demos(message.encode()) for message in messages] == is_own
    counts = counted(check, messages)
    assert counts == {
        "own": sum(map(bool, is_own)) - both(is_own, is_secret),
        "secret": sum(is_secret),
    }


def both(one: list[bool], other: list[bool]) -> int:
    return sum(a and b for a, b in zip(one, other, strict=True))


def test_a_line_of_which_the_api_or_the_principal_is_not_known_is_not_sent(
    check: JavaCheck,
) -> None:
    """Its body may hold a credential."""
    whole = request(51)
    messages = [
        "Processor 1 received request",
        whole.replace('"requestApiKey":51', '"requestApiKey":"51"'),
        whole.replace("requestApiKey", "apiKey"),
        whole.replace('"securityProtocol"', '"protocol"'),
        "Completed request:" + " " * 300 + whole,
    ]
    assert decided(check, messages) == [None] * len(messages)
    assert counted(check, messages) == {"unreadable": len(messages)}


def test_the_apis_with_credentials_are_those_of_the_demos_shipper(check: JavaCheck) -> None:
    messages = [request(key) for key in range(100)]
    left_out = [key for key, sent in enumerate(decided(check, messages)) if sent is None]
    assert left_out == list(SECRET_APIS)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (["apis.include=PRODUCE,HEARTBEAT"], [0, 2, 3]),
        (["apis.exclude=FETCH, HEARTBEAT"], [0, 3]),
        (['principals.exclude=User:broker;User:CN=a,O="b"'], [0, 2]),
        (["principals.include=User:alice"], [0, 2]),
        (["principals.include=User:ali"], []),
        (["apis.include=FETCH", "principals.include=User:broker"], [1]),
    ],
)
def test_apis_and_principals_are_filtered_and_counted(
    settings: list[str], kept: list[int], check: JavaCheck
) -> None:
    messages = [
        request(0),
        request(1, user="User:broker"),
        request(12),
        request(0, user='User:CN=a,O="b"'),
    ]
    sent = decided(check, messages, *settings)
    assert [at for at, each in enumerate(sent) if each] == kept
    assert counted(check, messages, *settings) == {"filtered": len(messages) - len(kept)}


def test_a_sampled_line_has_the_weight_of_those_it_stands_for(check: JavaCheck) -> None:
    others = [
        request(1),
        request(throttleTimeMs=5),
        request(request={"transactionalId": "t", "acks": -1}),
    ]
    messages = [*(request() for _ in range(30)), *others]
    settings = ["sampling.PRODUCE=0.1", "sampling.HEARTBEAT=0.5"]
    sent = decided(check, messages, *settings)
    assert [each.get("weight") for each in sent if each] == [10, 10, 10, None, None, None]
    assert counted(check, messages, *settings) == {"sampled": 27}
    rows = parsed(json.dumps(each).encode() for each in sent if each)
    assert sum(row["weight"] for row in rows) == len(messages)


def test_settings_that_cannot_be_right_are_named(check: JavaCheck) -> None:
    refused = {
        "topik=x": "unknown topik, known are [apis.exclude,",
        "sampling.FETCH=0.1": "sampling.FETCH: no API that may be sampled, those that may:",
        "sampling.PRODUCE=0.3": "sampling.PRODUCE: 0.3 must be 1, 1/2, 1/3 ... 1/1000",
        "sampling.PRODUCE=x": "sampling.PRODUCE: x must be 1, 1/2",
        "sampling.PRODUCE=0": "sampling.PRODUCE: 0 must be",
        "sampling.PRODUCE=-0.5": "sampling.PRODUCE: -0.5 must be",
        "apis.include=PRODUC": "apis.include: there is no API PRODUC",
        "queue.max.records=0": "queue.max.records: 0 must be a number from 1 to 2147483647",
        "queue.max.bytes=many": "queue.max.bytes: many must be a number",
        "own.principal=": "own.principal, such as User:shipper, and bootstrap.servers are required",
        "producer.client.id=x": "producer.client.id is quotaflow-shipper",
    }
    pairs = [*refused, *(f"sampling.{api}=0.01" for api in SAMPLED_APIS), "producer.acks=1"]
    answers = check.lines("settings", given=pairs)
    assert answers[len(refused) :] == ["taken"] * (len(SAMPLED_APIS) + 1)
    for answer, (pair, begin) in zip(answers, refused.items(), strict=False):
        assert answer.startswith(begin), pair


def test_own_lines_are_those_that_ingest_leaves_out_by_default(check: JavaCheck) -> None:
    ingest = IngestSection()
    assert ingest.shippers == [CLIENT_ID]
    properties = (files("quotaflow.broker") / "request-log.properties").read_text("utf-8")
    (own,) = re.findall(r"^own\.principal=(.*)$", properties, re.M)
    assert own in ingest.shipper_principals
    pairs = [line for line in properties.splitlines() if line and not line.startswith("#")]
    commented = re.findall(r"^#([a-z]\S*=\S*)$", properties, re.M)
    assert set(check.lines("settings", given=[*pairs, *commented])) == {"taken"}


def test_a_producer_that_hangs_slows_no_caller_and_the_topic_gets_to_know(
    check: JavaCheck,
) -> None:
    counts = check.counts("blocked")
    assert counts == {"lost_records": 1, "lines": 200_000, "sent": 1_001, "failed": 0}
