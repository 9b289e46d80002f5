"""What Spark's Kafka source is given: properties with their secrets, and nothing it sets itself."""

from typing import TYPE_CHECKING

import pytest

from quotaflow.pipelines.config import KafkaSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.streaming import sources

from ...cases import cases

if TYPE_CHECKING:
    pass

SCRAM = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "env:SOURCE_PW"}


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_PW", "pw")


@cases(
    ("prefix", "begins"),
    ("Kafka's own names", "", "org.apache.kafka.common."),
    ("shaded", "kafkashaded.", "kafkashaded.org.apache.kafka.common."),
)
def test_a_login_module_is_named_as_this_spark_has_it(prefix: str, begins: str) -> None:
    kafka = KafkaSection.model_validate({"properties": SCRAM, "login_module_prefix": prefix})
    assert sources.kafka_options(kafka)["kafka.sasl.jaas.config"].startswith(begins)


def test_a_handler_is_named_as_this_spark_has_it() -> None:
    properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
    kafka = KafkaSection.model_validate(
        {"properties": properties, "login_module_prefix": "kafkashaded."}
    )
    iam = "shadedmskiam.software.amazon.msk.auth.iam"
    options = sources.kafka_options(kafka)
    assert options["kafka.sasl.jaas.config"] == f"{iam}.IAMLoginModule required;"
    assert options["kafka.sasl.client.callback.handler.class"] == f"{iam}.IAMClientCallbackHandler"


def test_a_module_of_java_itself_has_no_other_name() -> None:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": "/k",
        "sasl.kerberos.principal": "q@R",
    }
    kafka = KafkaSection.model_validate(
        {"properties": properties, "login_module_prefix": "kafkashaded."}
    )
    assert sources.kafka_options(kafka)["kafka.sasl.jaas.config"].startswith("com.sun.security.")


def test_our_consumers_push_no_telemetry_into_what_they_read() -> None:
    assert sources.kafka_options(KafkaSection()) == {"kafka.enable.metrics.push": "false"}


def test_what_spark_sets_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"group\.id is set by Spark"):
        sources.kafka_options(KafkaSection(properties={"group.id": "x"}))
