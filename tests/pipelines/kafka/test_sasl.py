"""What kafka-python gets of a login, and that an IAM payload is signed as AWS publishes it."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import quote

import pytest

from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.kafka import sasl

HOST = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com"
KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def signing_key(secret: str, *scope: str) -> bytes:
    """AWS Signature Version 4: the key of a date, region and service."""
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def test_the_reference_derives_the_key_of_aws_s_own_example() -> None:
    # Of AWS's manual, "Deriving the signing key".
    derived = signing_key(KEY, "20120215", "us-east-1", "iam", "aws4_request").hex()
    assert derived == "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"


def signature(payload: dict[str, Any]) -> str:
    """The signature that belongs to a payload, by AWS's rules for a presigned request."""
    scope = payload["x-amz-credential"].split("/")[1:]
    names = ["Algorithm", "Credential", "Date", "Expires", "Security-Token", "SignedHeaders"]
    values = {f"X-Amz-{name}": payload.get(f"x-amz-{name.lower()}") for name in names}
    pairs = {"Action": payload["action"]} | {k: v for k, v in values.items() if v}
    query = "&".join(f"{key}={quote(value, safe='-._~')}" for key, value in sorted(pairs.items()))
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{query}\nhost:{payload['host']}\n\nhost\n{nothing}"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", payload["x-amz-date"], "/".join(scope), hashed])
    return hmac.new(signing_key(KEY, *scope), text.encode(), hashlib.sha256).hexdigest()


class Session:
    """Credentials as botocore's session gives them."""

    token: str | None = None

    def get_credentials(self) -> "Session":
        return self

    def get_frozen_credentials(self) -> "Session":
        return self

    def get_config_variable(self, name: str) -> str | None:
        assert name == "region"
        return None

    access_key, secret_key = "AKIDEXAMPLE", KEY


class Role(Session):
    """Credentials of a role, with characters that a query escapes."""

    token = "a/b+c=="


@pytest.mark.parametrize("session", [Session, Role])
@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-central-1"),
        ("boot-x1.c3.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.demo.abc.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example.com", "eu-west-3"),
    ],
)
def test_an_iam_payload_is_signed_for_the_region_of_its_broker(
    monkeypatch: pytest.MonkeyPatch, session: type[Session], host: str, region: str
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    login = object.__new__(sasl.MskIam)
    login.host, login._boto_session_cls = host, session
    payload = json.loads(login.auth_bytes())
    assert payload["x-amz-credential"].split("/")[2:] == [region, "kafka-cluster", "aws4_request"]
    assert payload["host"] == host
    assert payload.get("x-amz-security-token") == session.token
    assert payload["x-amz-signature"] == signature(payload)


@pytest.mark.parametrize(
    ("mechanism", "package", "extra"),
    [("GSSAPI", "gssapi", "kerberos"), ("AWS_MSK_IAM", "botocore", "iam")],
)
def test_a_login_without_its_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, package: str, extra: str
) -> None:
    monkeypatch.setattr(sasl, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(MissingToolError, match=rf"package {package}: .* extra {extra}"):
        sasl.options({"sasl.mechanism": mechanism})
