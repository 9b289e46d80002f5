"""Kafka's client properties: which values are refused at load, with the nearest right one."""

import re

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config import kafka_names
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.streaming import sources

from ...cases import cases

URL = "sasl.oauthbearer.token.endpoint.url"
SERVERS = "bootstrap.servers"
HANDLER = "sasl.login.callback.handler.class"
SASL = {"security.protocol": "SASL_SSL"}
TOKEN = SASL | {"sasl.mechanism": "OAUTHBEARER", URL: "https://id.example.com/token"}
SECRET = "env:QF_SECRET"
CLIENT = TOKEN | {"sasl.oauthbearer.client.id": "id", "sasl.oauthbearer.client.secret": SECRET}
OAUTH = "org.apache.kafka.common.security.oauthbearer"
OF_LOGIN = "OAuthBearerLoginCallbackHandler"
BY_KEYTAB = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="/k";'
STORE = {"security.protocol": "SSL", "ssl.keystore.location": "/k"}

PROTOCOLS = "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
MECHANISMS = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM"
CHAIN, CERTIFICATES = "ssl.keystore.certificate.chain", "ssl.truststore.certificates"
REFUSED: tuple[tuple[str, dict[str, str], str], ...] = (
    (
        "no protocol",
        {"security.protocol": "SASL_SLL"},
        f"security.protocol SASL_SLL is none of {PROTOCOLS} (did you mean SASL_SSL?)",
    ),
    ("no mechanism", SASL, f"SASL_SSL needs sasl.mechanism: name one of {MECHANISMS}"),
    (
        "another mechanism",
        SASL | {"sasl.mechanism": "DIGEST-MD5"},
        f"sasl.mechanism DIGEST-MD5 is none of {MECHANISMS}",
    ),
    ("misspelt", {"sasl.mechanism": "SCRAM-SHA-521"}, "(did you mean SCRAM-SHA-512?)"),
    ("no port", {SERVERS: "b1:9092, b2"}, "b2 has no port: write b2:9092"),
    ("a port of text", {SERVERS: "b1:http"}, "b1:http has no port: write b1:9092"),
    ("of a URL", {SERVERS: "SSL://b1"}, "SSL://b1 has no port: write SSL://b1:9092"),
    ("no port of IPv6", {SERVERS: "[::f]"}, "write [::f]:9092"),
    ("past ports", {SERVERS: "b1:99999"}, "b1:99999 has no port: write b1:9092"),
    ("no broker", {SERVERS: " , "}, "bootstrap.servers: no broker is named"),
)
REFUSED_LOGINS: tuple[tuple[str, dict[str, str], str], ...] = (
    (
        "no user",
        SASL | {"sasl.mechanism": "PLAIN"},
        "PLAIN needs sasl.username and sasl.password, or sasl.jaas.config",
    ),
    (
        "no client secret",
        TOKEN | {"sasl.oauthbearer.client.id": "id"},
        "OAUTHBEARER needs sasl.oauthbearer.client.secret, or sasl.jaas.config",
    ),
    (
        "no token address",
        {k: v for k, v in CLIENT.items() if k != URL},
        f"OAUTHBEARER needs {URL}: the address",
    ),
    (
        "a token in a file",
        CLIENT | {URL: "file:/etc/passwd"},
        f"{URL} file:/etc/passwd is no address: write https://HOST/PATH",
    ),
    ("more than an address", CLIENT | {URL: "https://a/ -javaagent:x"}, "is no address"),
    (
        "unsecured tokens",
        CLIENT | {"sasl.oauthbearer.method": "default"},
        "sasl.oauthbearer.method is not oidc",
    ),
    (
        "a keytab of nobody",
        SASL | {"sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "/k"},
        "GSSAPI needs sasl.kerberos.principal, or sasl.jaas.config",
    ),
    (
        "IAM without TLS",
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM"},
        "AWS_MSK_IAM needs security.protocol SASL_SSL, and it is SASL_PLAINTEXT",
    ),
    ("a class", CLIENT | {HANDLER: "a.Handler"}, f"{HANDLER} names code to run: leave it out"),
    (
        "a class for TLS",
        {"ssl.engine.factory.class": "com.example.Factory"},
        "ssl.engine.factory.class names code to run",
    ),
    (
        "another store",
        STORE | {"ssl.keystore.type": "JCEKS"},
        "ssl.keystore.type JCEKS is none of PEM, JKS, PKCS12",
    ),
    ("no password", STORE, "ssl.keystore.type JKS needs ssl.keystore.password, by reference"),
    (
        "two stores",
        STORE | {"ssl.keystore.type": "PEM", CHAIN: "c"},
        f"{CHAIN} and ssl.keystore.location exclude each other",
    ),
    (
        "a text that is no JKS",
        {"ssl.truststore.type": "JKS", CERTIFICATES: "c"},
        f"{CERTIFICATES} is PEM, and ssl.truststore.type is JKS: leave the type out",
    ),
)


@cases(("properties", "message"), *REFUSED, *REFUSED_LOGINS)
def test_what_no_client_takes_is_refused_at_load(properties: dict[str, str], message: str) -> None:
    pairs = [f"kafka.properties.{key}={value}" for key, value in properties.items()]
    with pytest.raises(ConfigError) as raised:
        config.load(overrides=pairs)
    assert "--set: kafka: " in str(raised.value)
    assert message in str(raised.value)
    assert "; " not in str(raised.value)


@cases(("properties", "message"), *REFUSED)
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


@cases(
    "properties",
    ("PLAIN by default", SASL | {"sasl.username": "u", "sasl.password": "env:QF_PW"}),
    ("addresses", {"security.protocol": "SSL", SERVERS: "SSL://b1:9093,[::1]:9093,"}),
    ("references", {"security.protocol": "env:QF_NONE", "sasl.mechanism": "env:QF_NONE"}),
    ("a token", CLIENT),
    ("a hidden address", CLIENT | {URL: SECRET}),
    ("its handler", CLIENT | {HANDLER: f"{OAUTH}.{OF_LOGIN}"}),
    ("its handler on Databricks", CLIENT | {HANDLER: f"kafkashaded.{OAUTH}.secured.{OF_LOGIN}"}),
    ("a jaas text", TOKEN | {"sasl.jaas.config": SECRET}),
    ("a keytab", SASL | {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": BY_KEYTAB}),
    ("IAM", SASL | {"sasl.mechanism": "AWS_MSK_IAM"}),
    ("PKCS12", STORE | {"ssl.keystore.type": "PKCS12", "ssl.keystore.password": SECRET}),
    ("an inline key", {"ssl.keystore.key": SECRET, CHAIN: "c"}),
)
def test_what_may_be_right_is_taken(properties: dict[str, str]) -> None:
    assert config.KafkaSection(properties=properties).properties == properties


def test_a_protocol_may_be_small_as_for_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = config.load(overrides=["kafka.properties.security.protocol=ssl"])
    assert conf.kafka.properties["security.protocol"] == "SSL"
    monkeypatch.setenv("QF_P", "ssl")
    properties = {"bootstrap.servers": "b:1", "security.protocol": "env:QF_P"}
    assert admin.options(properties)["security_protocol"] == "SSL"


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("bootstrap.server", "bootstrap.servers"),
        ("bootstrap_servers", "bootstrap.servers"),
        ("security.protocl", "security.protocol"),
        ("sasl.mechanisms", "sasl.mechanism"),
        ("ssl.truststore.locaton", "ssl.truststore.location"),
    ],
)
def test_a_typo_in_a_name_has_the_right_one(name: str, right: str) -> None:
    with pytest.raises(ValueError, match=rf"no property {name} \(did you mean {right}\?\)"):
        config.KafkaSection(properties={name: "x"})


@pytest.mark.parametrize("name", ["client.dns.lookup", "sasl.oauthbearer.method", "client.own.x"])
def test_a_name_of_a_client_is_taken(name: str) -> None:
    assert kafka_names.near(name) is kafka_names.unread(name) is None


@cases(
    ("name", "hint"),
    ("of Databricks", "databricks.serviceCredential", "(did you mean kafka.service_credential?)"),
    ("Spark's own prefix", "kafka.ssl.protocol", "(did you mean ssl.protocol?)"),
    ("a typo in the first word", "sals.my.option", "(did you mean sasl.my.option?)"),
    ("a plug-in", "aws.region", "no client of Kafka reads aws.region"),
)
def test_a_prefix_that_nothing_reads_is_refused(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(hint)):
        config.KafkaSection(properties={name: "x"})


def test_a_service_credential_is_the_whole_login() -> None:
    section = {"service_credential": "msk", "properties": {"bootstrap.servers": "b:9098"}}
    kafka = config.KafkaSection.model_validate(section)
    options = sources.kafka_options(kafka)
    assert options["databricks.serviceCredential"] == "msk"
    assert {key for key in options if "serviceCredential" not in key} == {
        "kafka.bootstrap.servers",
        "kafka.enable.metrics.push",
    }
    section["properties"] = {"sasl.mechanism": "PLAIN", "sasl.username": "u"}
    with pytest.raises(ValueError, match=r"brings the login: leave sasl\.mechanism out"):
        config.KafkaSection.model_validate(section)
