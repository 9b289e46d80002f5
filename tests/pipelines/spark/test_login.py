"""What a session's JVM gets for a login: the allowed token address, the Kerberos file, the jar."""

from pathlib import Path

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.spark import jars, login

URL = "https://id.example.com/token"
OPTIONS = "spark.driver.extraJavaOptions"
TOKEN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": URL,
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": "env:LOGIN_SECRET",
}
KERBEROS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "GSSAPI",
    "sasl.kerberos.keytab": "/k",
    "sasl.kerberos.principal": "q@R",
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # Jobs that read tables alone run without secrets.
    monkeypatch.delenv("LOGIN_SECRET", raising=False)
    monkeypatch.setenv("KRB5_CONFIG", "/my etc/other.conf:/etc/krb5.conf")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)


def spark_conf(properties: dict[str, str], **given: str) -> dict[str, str]:
    conf = config.Conf.model_validate(
        {"kafka": {"properties": properties}, "spark": {"conf": given}}
    )
    return login.section(conf.spark, conf.kafka).conf


def test_a_token_s_address_is_allowed_beside_own_options() -> None:
    allowed = f'"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={URL}"'
    seen = spark_conf(TOKEN, **{OPTIONS: "-Xss8m"})
    assert seen[OPTIONS] == f"{allowed} -Xss8m"
    assert seen["spark.executor.extraJavaOptions"] == allowed


def test_java_reads_the_kerberos_file_of_the_environment() -> None:
    assert spark_conf(KERBEROS)[OPTIONS] == '"-Djava.security.krb5.conf=/my etc/other.conf"'


def test_iam_gets_the_module_of_aws_beside_own_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "jar_set", lambda name, *_: [Path(f"/{name}.jar")])
    iam = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
    assert spark_conf(iam, **{"spark.jars": "/own.jar"}) == {
        "spark.jars": "/own.jar,/msk-iam-jars.jar"
    }


@pytest.mark.parametrize("remote", [False, True])
def test_a_password_or_a_running_session_needs_nothing(
    monkeypatch: pytest.MonkeyPatch, remote: bool
) -> None:
    if remote:
        monkeypatch.setenv("SPARK_REMOTE", "sc://spark:15002")
    password = {"sasl.username": "u", "sasl.password": "env:LOGIN_SECRET"}
    assert spark_conf(TOKEN if remote else password) == {}
