"""How Java's client properties reach the Python client, and what of them cannot be taken."""

import re
from pathlib import Path

import pytest

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka import admin

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
