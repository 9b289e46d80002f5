"""Secrets stay references until the edge, and no message repeats one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.config import logins, secrets
from quotaflow.pipelines.errors import ConfigError

from ... import case_tables
from ...cases import cases

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [
        ("sasl.password", True),
        ("ssl.key.password", True),
        ("ssl.keystore.key", True),
        ("sasl.jaas.config", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("basic.auth.user.info", True),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("ssl.truststore.location", False),
        ("bootstrap.servers", False),
        ("client.id", False),
    ],
)
def test_which_properties_hold_secrets(key: str, is_secret: bool) -> None:
    assert secrets.is_secret(key) is is_secret


@pytest.mark.parametrize("value", ["env:PW", "secret:scope/key"])
def test_a_reference_is_no_literal(value: str) -> None:
    assert secrets.literal_secret_problem("sasl.password", value) is None


def test_a_literal_is_refused_without_being_repeated() -> None:
    problem = secrets.literal_secret_problem("sasl.password", "hunter2")
    assert problem is not None
    assert "sasl.password" in problem
    assert "hunter2" not in problem


def test_a_kerberos_login_holds_no_secret() -> None:
    jaas = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="/etc/q.keytab";'
    assert secrets.literal_secret_problem("sasl.jaas.config", jaas) is None


def test_a_reference_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QF_PW", "s3")
    assert secrets.resolve({"ssl.key.password": "env:QF_PW"}) == {"ssl.key.password": "s3"}


@cases(
    ("properties", "message"),
    ("unset variable", {"sasl.password": "env:QF_NONE"}, "QF_NONE is not set"),
    ("no scope", {"sasl.password": "secret:key"}, "names no scope: write secret:scope/key"),
    ("not on Databricks", {"sasl.password": "secret:a/b"}, "on Databricks only"),
    ("half a login", {"sasl.username": "u"}, "no sasl.password"),
    (
        "another mechanism's keys",
        {"sasl.mechanism": "GSSAPI", "sasl.username": "u", "sasl.password": "env:QF_PW"},
        "sasl.mechanism GSSAPI takes no sasl.username: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 do",
    ),
    (
        "two logins",
        {"sasl.username": "u", "sasl.password": "env:QF_PW", "sasl.jaas.config": f"{PLAIN} r;"},
        "exclude each other",
    ),
    (
        "another login module",
        {"sasl.jaas.config": "com.sun.security.auth.module.JndiLoginModule required;"},
        "login module that is not one of",
    ),
    (
        "two login modules",
        {"sasl.jaas.config": f"{PLAIN} required; com.sun.jndi.JndiLoginModule required;"},
        "cannot be read: write MODULE required",
    ),
    (
        "the module of another mechanism",
        {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": f"{PLAIN} required;"},
        "names PlainLoginModule, and sasl.mechanism GSSAPI needs Krb5LoginModule",
    ),
    (
        "an unsecured token",
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{OAUTH} required unsecuredLoginStringClaim_sub="admin";',
        },
        "has unsecuredLoginStringClaim_sub, which this login does not take",
    ),
    (
        "extensions that are none",
        {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.extensions": "a b"},
        "is not NAME=VALUE",
    ),
    (
        "a key by two names",
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.client.id": "a",
            "sasl.oauthbearer.client.credentials.client.id": "b",
        },
        "two names of clientId: leave one",
    ),
)
def test_a_login_that_cannot_be_right_is_one_error(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], message: str
) -> None:
    monkeypatch.setenv("QF_PW", "hunter2")
    with pytest.raises(ConfigError, match=message) as raised:
        secrets.resolve(properties)
    assert "hunter2" not in str(raised.value)


def test_the_mechanism_is_named_to_java_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QF_PW", "p")
    resolved = secrets.resolve({"sasl.username": "u", "sasl.password": "env:QF_PW"})
    assert resolved == {
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="u" password="p";',
    }


LOGINS = {
    **case_tables.table(__file__, "LOGINS"),
    "client credentials": (
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "env:QF_PW",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1, identityPoolId=pool-1",
            "sasl.oauthbearer.method": "oidc",
            "https.ca.location": "/ca.pem",
        },
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
            "sasl.jaas.config": f'{OAUTH} required clientId="me" clientSecret="p\\"\\\\w" '
            'scope="kafka" '
            'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-1" '
            'ssl.truststore.location="/ca.pem" ssl.truststore.type="PEM";',
            "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer"
            ".secured.OAuthBearerLoginCallbackHandler",
        },
    ),
}


@pytest.mark.parametrize(("properties", "expected"), LOGINS.values(), ids=LOGINS)
def test_a_login_becomes_what_java_takes(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], expected: dict[str, str]
) -> None:
    monkeypatch.setenv("QF_PW", 'p"\\w')
    assert secrets.resolve(properties) == expected


@cases(
    ("properties", "principal"),
    ("a user", {"sasl.username": "u", "sasl.password": "env:QF_NONE"}, "User:u"),
    ("a hidden user", {"sasl.username": "env:QF_NONE", "sasl.password": "env:QF_NONE"}, None),
    ("a keytab", LOGINS["a keytab"][0], "User:quotaflow"),
    ("a token", LOGINS["client credentials"][0], None),
    ("IAM", LOGINS["IAM"][0], None),
)
def test_whom_brokers_take_a_login_for(properties: dict[str, str], principal: str | None) -> None:
    assert secrets.principal(properties) == principal


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_login_comes_back_from_its_jaas_text_whatever_its_characters(
    username: str, password: str
) -> None:
    given_properties = {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u" + username,
        "sasl.password": "p" + password,
    }
    jaas = secrets.resolve(given_properties)["sasl.jaas.config"]
    options = logins.module_options(jaas)
    assert options == {"username": "u" + username, "password": "p" + password}
    # A line that ends within quotes ends the text for Java.
    assert not set("\n\r") & set(jaas)
