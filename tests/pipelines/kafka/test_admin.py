"""How Java's client properties reach the Python client, and what of them cannot be taken."""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import errors as kafka_errors

from quotaflow.pipelines.errors import ConfigError, KafkaError
from quotaflow.pipelines.kafka import admin

from ...cases import cases

SSL = {"bootstrap.servers": "b:9093", "security.protocol": "SSL"}
PEM = {f"ssl.{store}.type": "PEM" for store in ("truststore", "keystore")}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"ssl.truststore.location": "{folder}/none.pem"},
            "ssl.truststore.location {folder}/none.pem cannot be read: No such file or directory",
        ),
        (
            {"ssl.truststore.location": "{folder}/broken.pem"},
            "ssl.truststore.location {folder}/broken.pem cannot be read: ",
        ),
        ({"ssl.truststore.certificates": "no"}, "ssl.truststore.certificates cannot be read: "),
        (
            {"ssl.keystore.location": "{folder}/broken.pem"},
            "ssl.keystore.location {folder}/broken.pem cannot be read: ",
        ),
        (
            {"ssl.keystore.key": "env:QF_KEY", "ssl.keystore.certificate.chain": "c"},
            "ssl.keystore.key cannot be read: ",
        ),
    ],
    ids=["missing", "no PEM", "inline and no PEM", "a keystore that is no PEM", "an inline key"],
)
def test_a_certificate_that_cannot_be_read_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], message: str
) -> None:
    monkeypatch.setenv("QF_KEY", "k")
    (tmp_path / "broken.pem").write_text("not a certificate")
    given = {name: value.format(folder=tmp_path) for name, value in properties.items()}
    with pytest.raises(ConfigError, match=re.escape(message.format(folder=tmp_path))):
        admin.options(SSL | PEM | given)


UNTRUSTED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate"
NO_TLS = "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"


@cases(
    ("why", "expected"),
    (
        "a CA of the company's own",
        f"{UNTRUSTED} (_ssl.c:1006)",
        "does not trust the certificate of b:9093 (self-signed certificate): name its CA",
    ),
    ("a port without TLS", NO_TLS, "no TLS with b:9093 ([SSL: WRONG_VERSION"),
)
def test_a_handshake_that_fails_is_an_error_at_once(
    monkeypatch: pytest.MonkeyPatch, why: str, expected: str
) -> None:
    tries = []

    @contextmanager
    def refused(_: object) -> Iterator[None]:
        tries.append(1)
        # kafka-python only logs it, and then waits for another broker.
        error = kafka_errors.KafkaConnectionError(f"Handshake failed: {why}")
        logging.getLogger("kafka.net.manager").error("Connection failed: %s", error)
        raise kafka_errors.KafkaTimeoutError("Unable to bootstrap")
        yield

    monkeypatch.setattr(admin, "client", refused)
    with pytest.raises(KafkaError) as raised:
        admin.describe({"bootstrap.servers": "b:9093"}, [])
    assert expected in str(raised.value)
    assert len(tries) == 1


@cases(
    ("properties", "expected"),
    ("none", {}, "The security.protocol was PLAINTEXT, as none is set"),
    ("one", {"security.protocol": "SSL"}, "The security.protocol was SSL"),
)
def test_a_cluster_that_does_not_answer_may_expect_another_protocol(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], expected: str
) -> None:
    @contextmanager
    def silent(_: object) -> Iterator[None]:
        raise kafka_errors.KafkaTimeoutError("Unable to bootstrap")
        yield

    monkeypatch.setattr(admin, "client", silent)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(KafkaError) as raised:
        admin.describe({"bootstrap.servers": "b:9093", **properties}, [])
    assert str(raised.value).endswith(expected)
