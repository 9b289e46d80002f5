"""Secrets stay references until the edge, and no message repeats one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.config import secrets
from quotaflow.pipelines.errors import ConfigError

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


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        pytest.param({"sasl.password": "env:QF_NONE"}, "QF_NONE is not set", id="unset variable"),
        pytest.param(
            {"sasl.password": "secret:key"}, "names no scope: write secret:scope/key", id="no scope"
        ),
        pytest.param({"sasl.password": "secret:a/b"}, "on Databricks only", id="not on Databricks"),
        pytest.param({"sasl.username": "u"}, "no sasl.password", id="half a login"),
        pytest.param(
            {"sasl.mechanism": "GSSAPI", "sasl.username": "u", "sasl.password": "env:QF_PW"},
            "sasl.mechanism GSSAPI takes no sasl.username: PLAIN and SCRAM do",
            id="a mechanism without names",
        ),
        pytest.param(
            {"sasl.username": "u", "sasl.password": "env:QF_PW", "sasl.jaas.config": f"{PLAIN} r;"},
            "exclude each other",
            id="two logins",
        ),
        pytest.param(
            {"sasl.jaas.config": "com.sun.security.auth.module.JndiLoginModule required;"},
            "login module that is not one of",
            id="another login module",
        ),
        pytest.param(
            {"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"},
            "not one of PlainLoginModule, ScramLoginModule",
            id="a login that no client of ours takes",
        ),
    ],
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
    assert secrets.credentials(jaas) == ("u" + username, "p" + password)
