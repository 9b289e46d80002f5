"""Kafka's client properties: which values are refused at load, with the nearest right one."""

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import admin

REFUSED = [
    pytest.param(
        {"security.protocol": "SASL_SLL"},
        "security.protocol SASL_SLL is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL "
        "(did you mean SASL_SSL?)",
        id="no protocol",
    ),
    pytest.param(
        {"security.protocol": "SASL_SSL"},
        "SASL_SSL needs sasl.mechanism: name one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        id="no mechanism",
    ),
    pytest.param(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
        "sasl.mechanism OAUTHBEARER is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        id="a token",
    ),
    pytest.param(
        {"sasl.mechanism": "SCRAM-SHA-521"}, "(did you mean SCRAM-SHA-512?)", id="misspelt"
    ),
    pytest.param(
        {"bootstrap.servers": "b1:9092, b2"}, "b2 has no port: write b2:9092", id="no port"
    ),
    pytest.param(
        {"bootstrap.servers": "b1:http"}, "b1:http has no port: write b1:9092", id="a port of text"
    ),
    pytest.param(
        {"bootstrap.servers": "SSL://b1"},
        "SSL://b1 has no port: write SSL://b1:9092",
        id="of a URL",
    ),
    pytest.param({"bootstrap.servers": "[::f]"}, "write [::f]:9092", id="no port of IPv6"),
    pytest.param(
        {"bootstrap.servers": "b1:99999"}, "b1:99999 has no port: write b1:9092", id="past ports"
    ),
    pytest.param(
        {"bootstrap.servers": " , "}, "bootstrap.servers: no broker is named", id="no broker"
    ),
]


@pytest.mark.parametrize(("properties", "message"), REFUSED)
def test_what_no_client_takes_is_refused_at_load(properties: dict[str, str], message: str) -> None:
    pairs = [f"kafka.properties.{key}={value}" for key, value in properties.items()]
    with pytest.raises(ConfigError) as raised:
        config.load(overrides=pairs)
    assert "--set: kafka: " in str(raised.value)
    assert message in str(raised.value)
    assert "; " not in str(raised.value)


@pytest.mark.parametrize(("properties", "message"), REFUSED)
def test_what_a_reference_hid_is_refused_where_it_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], message: str
) -> None:
    for number, value in enumerate(properties.values()):
        monkeypatch.setenv(f"QF_{number}", value)
    hidden = {key: f"env:QF_{number}" for number, key in enumerate(properties)}
    conf = config.KafkaSection(properties={"bootstrap.servers": "b:1"} | hidden)
    with pytest.raises(ConfigError) as raised:
        admin.options(conf.properties)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "properties",
    [
        {"security.protocol": "SASL_SSL", "sasl.username": "u", "sasl.password": "env:QF_PW"},
        {"security.protocol": "SSL", "bootstrap.servers": "SSL://b1:9093,[::1]:9093,"},
        {"security.protocol": "env:QF_NONE", "sasl.mechanism": "env:QF_NONE"},
    ],
    ids=["PLAIN by default", "addresses", "references"],
)
def test_what_may_be_right_is_taken(properties: dict[str, str]) -> None:
    assert config.KafkaSection(properties=properties).properties == properties


def test_a_protocol_may_be_small_as_for_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = config.load(overrides=["kafka.properties.security.protocol=ssl"])
    assert conf.kafka.properties["security.protocol"] == "SSL"
    monkeypatch.setenv("QF_P", "ssl")
    properties = {"bootstrap.servers": "b:1", "security.protocol": "env:QF_P"}
    assert admin.options(properties)["security_protocol"] == "SSL"
