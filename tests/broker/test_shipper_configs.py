"""The shipper configurations for operators leave out the same lines as the demo's shipper."""

import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

from quotaflow.demo.line_filter import CLIENT_ID, SECRET_APIS, OwnLines, holds_secret
from quotaflow.demo.shipper import MAX_LINE_BYTES


def conf(name: str) -> Any:
    return yaml.safe_load((files("quotaflow.broker") / name).read_text())


VECTOR, FLUENT_BIT = conf("vector.yaml"), conf("fluent-bit.yaml")
_CONDITION = VECTOR["transforms"]["shippable"]["condition"]["source"]
VECTOR_CLIENT, VECTOR_USER, VECTOR_SECRET = re.findall(r"r'(.*?)'\)", _CONDITION)
FLUENT_OWN, FLUENT_SECRET = (
    rule["exclude"].removeprefix("line ") for rule in FLUENT_BIT["pipeline"]["filters"]
)


def line(api_key: int = 0, client_id: str = "rdk-alice", principal: str = "User:alice") -> str:
    return (
        f'{{"ts":1,"broker":1,"r":{{"isForwarded":false,"requestHeader":{{"requestApiKey":{api_key},'
        f'"requestApiVersion":10,"correlationId":7,"clientId":"{client_id}",'
        '"requestApiKeyName":"X"},"request":{},"response":{},"securityProtocol":"SASL_SSL",'
        f'"principal":"{principal}","listener":"EXTERNAL"}}}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(line(), id="somebody's line"),
        pytest.param(line(0, CLIENT_ID, "User:shipper"), id="the shipper's line"),
        pytest.param(line(0, CLIENT_ID), id="somebody under the shipper's client id"),
        pytest.param(line(0, f'\\"clientId\\":\\"{CLIENT_ID}\\"'), id="a client id that quotes it"),
        pytest.param(line(0, "x", "User:shipper"), id="the shipper's user with another client"),
        pytest.param(line(510), id="an api key that begins like a secret one"),
        *(pytest.param(line(key), id=f"secret api {key}") for key in SECRET_APIS),
    ],
)
def test_configurations_leave_out_what_the_demo_leaves_out(text: str) -> None:
    is_own = OwnLines(principal="User:shipper")(text.encode())
    is_secret = holds_secret(text.encode())
    assert bool(re.search(VECTOR_CLIENT, text) and re.search(VECTOR_USER, text)) is is_own
    assert bool(re.search(FLUENT_OWN, text)) is is_own
    assert bool(re.search(VECTOR_SECRET, text)) is is_secret
    assert bool(re.search(FLUENT_SECRET, text)) is is_secret


def test_the_longest_line_fits_everywhere() -> None:
    source, sink = VECTOR["sources"]["request_log"], VECTOR["sinks"]["kafka"]
    tail, kafka = FLUENT_BIT["pipeline"]["inputs"][0], FLUENT_BIT["pipeline"]["outputs"][0]
    assert source["max_line_bytes"] == MAX_LINE_BYTES
    assert tail["buffer_max_size"] == f"{MAX_LINE_BYTES >> 20}M"
    assert int(sink["librdkafka_options"]["message.max.bytes"]) > MAX_LINE_BYTES
    assert kafka["rdkafka.message.max.bytes"] > MAX_LINE_BYTES


def test_no_configuration_holds_a_password() -> None:
    assert VECTOR["sinks"]["kafka"]["sasl"]["password"] == "SECRET[kafka.password]"
    password = FLUENT_BIT["pipeline"]["outputs"][0]["rdkafka.sasl.password"]
    assert password == "${SHIPPER_PASSWORD}"
