"""Kafka's client properties: which values are refused at load, with the nearest right one."""

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.config import kafka_names
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import admin

URL = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
SASL = {"security.protocol": "SASL_SSL"}
TOKEN = SASL | {"sasl.mechanism": "OAUTHBEARER", URL: "https://id.example.com/token"}
SECRET = "env:QF_SECRET"
CLIENT = TOKEN | {
    "sasl.oauthbearer.client.id": "id",
    "sasl.oauthbearer.client.secret": SECRET,
}
OAUTH = "org.apache.kafka.common.security.oauthbearer"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
STORE = {"security.protocol": "SSL", "ssl.keystore.location": "/k"}

REFUSED = [
    pytest.param(
        {"security.protocol": "SASL_SLL"},
        "security.protocol SASL_SLL is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL "
        "(did you mean SASL_SSL?)",
        id="no protocol",
    ),
    pytest.param(
        {"security.protocol": "SASL_SSL"},
        "SASL_SSL needs sasl.mechanism: name one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, "
        "OAUTHBEARER, GSSAPI, AWS_MSK_IAM",
        id="no mechanism",
    ),
    pytest.param(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "DIGEST-MD5"},
        "sasl.mechanism DIGEST-MD5 is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, "
        "GSSAPI, AWS_MSK_IAM",
        id="another mechanism",
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
REFUSED_LOGINS = [
    pytest.param(
        SASL | {"sasl.mechanism": "PLAIN"},
        "PLAIN needs sasl.username and sasl.password, or sasl.jaas.config",
        id="no user",
    ),
    pytest.param(
        TOKEN | {"sasl.oauthbearer.client.id": "id"},
        "OAUTHBEARER needs sasl.oauthbearer.client.secret, or sasl.jaas.config",
        id="no client secret",
    ),
    pytest.param(
        {k: v for k, v in CLIENT.items() if k != URL},
        f"OAUTHBEARER needs {URL}: the address",
        id="no token address",
    ),
    pytest.param(
        CLIENT | {URL: "file:/etc/passwd"},
        f"{URL} file:/etc/passwd is no address: write https://HOST/PATH",
        id="a token in a file",
    ),
    pytest.param(
        CLIENT | {URL: "https://a/ -javaagent:x"}, "is no address", id="more than an address"
    ),
    pytest.param(
        CLIENT | {"sasl.oauthbearer.method": "default"},
        "sasl.oauthbearer.method is not oidc",
        id="unsecured tokens",
    ),
    pytest.param(
        SASL | {"sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "/k"},
        "GSSAPI needs sasl.kerberos.principal, or sasl.jaas.config",
        id="a keytab of nobody",
    ),
    pytest.param(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM"},
        "AWS_MSK_IAM needs security.protocol SASL_SSL, and it is SASL_PLAINTEXT",
        id="IAM without TLS",
    ),
    pytest.param(
        CLIENT | {HANDLER: "com.example.Handler"},
        f"{HANDLER} names code to run: leave it out",
        id="a class",
    ),
    pytest.param(
        {"ssl.engine.factory.class": "com.example.Factory"},
        "ssl.engine.factory.class names code to run",
        id="a class for TLS",
    ),
    pytest.param(
        STORE | {"ssl.keystore.type": "JCEKS"},
        "ssl.keystore.type JCEKS is none of PEM, JKS, PKCS12",
        id="another store",
    ),
    pytest.param(
        STORE,
        "ssl.keystore.type JKS needs ssl.keystore.password, by reference",
        id="a store without its password",
    ),
    pytest.param(
        STORE | {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "c"},
        "ssl.keystore.certificate.chain and ssl.keystore.location exclude each other",
        id="two stores",
    ),
    pytest.param(
        {"ssl.truststore.type": "JKS", "ssl.truststore.certificates": "c"},
        "ssl.truststore.certificates is PEM, and ssl.truststore.type is JKS: leave the type out",
        id="a text that is no JKS",
    ),
]


@pytest.mark.parametrize(("properties", "message"), REFUSED + REFUSED_LOGINS)
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
        CLIENT,
        CLIENT | {URL: SECRET},
        CLIENT | {HANDLER: f"{OAUTH}.OAuthBearerLoginCallbackHandler"},
        CLIENT | {HANDLER: f"kafkashaded.{OAUTH}.secured.OAuthBearerLoginCallbackHandler"},
        TOKEN | {"sasl.jaas.config": SECRET},
        SASL
        | {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": f'{KERBEROS} required keyTab="/k";'},
        SASL | {"sasl.mechanism": "AWS_MSK_IAM"},
        STORE | {"ssl.keystore.type": "PKCS12", "ssl.keystore.password": SECRET},
        {"ssl.keystore.key": SECRET, "ssl.keystore.certificate.chain": "c"},
    ],
    ids=[
        *("PLAIN by default", "addresses", "references", "a token", "a hidden address"),
        *("its handler", "its handler on Databricks", "a jaas text", "a keytab", "IAM"),
        *("PKCS12", "an inline key"),
    ],
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


@pytest.mark.parametrize(
    "name", ["my.plugin.url", "aws.region", "client.dns.lookup", "sasl.oauthbearer.method"]
)
def test_a_name_of_a_plugin_is_taken(name: str) -> None:
    assert kafka_names.near(name) is None
