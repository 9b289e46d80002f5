"""What kafka-python gets of a service credential, by the API that Databricks describes."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import admin

HOST = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com"
HUBS = "demo.servicebus.windows.net"


def options_by(provider: object, server: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The options of an admin client where Databricks gives this provider for `kafka-login`."""
    credentials = SimpleNamespace(getServiceCredentialsProvider={"kafka-login": provider}.get)
    runtime = SimpleNamespace(dbutils=SimpleNamespace(credentials=credentials))
    monkeypatch.setitem(sys.modules, "databricks.sdk.runtime", runtime)
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    return admin.options(section(server).login)


def section(server: str) -> config.KafkaSection:
    properties = {"bootstrap.servers": server}
    return config.KafkaSection(service_credential="kafka-login", properties=properties)


def test_of_azure_it_gives_tokens_for_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    class Credential:
        def get_token(self, scope: str) -> SimpleNamespace:
            return SimpleNamespace(token=f"token of {scope}")

    options = options_by(Credential(), f"{HUBS}:9093", monkeypatch)
    assert (options["security_protocol"], options["sasl_mechanism"]) == ("SASL_SSL", "OAUTHBEARER")
    token = options["sasl_oauth_token_provider"].token()
    assert token == f"token of https://{HUBS}/.default"


def test_of_aws_it_signs_with_its_own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka.net.sasl import SASL_MECHANISMS  # noqa: PLC0415  registered by the login

    frozen = SimpleNamespace(access_key="AKIA", secret_key="s", token="t")
    of_session = SimpleNamespace(get_frozen_credentials=lambda: frozen)
    session = SimpleNamespace(get_credentials=lambda: of_session)
    monkeypatch.setitem(sys.modules, "botocore", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "botocore.session", SimpleNamespace(Session=None))
    options = options_by(session, f"{HOST}:9098", monkeypatch)
    assert (options["security_protocol"], options["sasl_mechanism"]) == ("SASL_SSL", "AWS_MSK_IAM")
    login = SASL_MECHANISMS["AWS_MSK_IAM"](host=HOST, security_protocol="SASL_SSL")
    assert b'"AKIA/' in login.auth_bytes()
    assert b"eu-central-1" in login.auth_bytes()


def test_of_another_cloud_and_elsewhere_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="can log in on Databricks alone"):
        admin.options(section("b:9093").login)
    with pytest.raises(ConfigError, match="is none of AWS or Azure"):
        options_by(object(), "b:9093", monkeypatch)
