"""Tokens are fetched by the client's secret, renewed in time, and refusals are one error."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import parse_qs

import pytest
from kafka.errors import SaslAuthenticationFailedError

from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.kafka.oauth import ClientCredentials

from ...cases import cases
from ...http_endpoint import Endpoint, listening

OPTIONS = {
    "clientId": "me",
    "clientSecret": "hunter2",
    "scope": "a b",
    "extension_logicalCluster": "lkc-1",
}


@pytest.fixture
def provider() -> Iterator[Endpoint]:
    with listening("/token", lambda content: parse_qs(content.decode())) as endpoint:
        endpoint.body = json.dumps({"access_token": "t1", "expires_in": 100}).encode()
        yield endpoint


def test_a_token_is_fetched_once_and_renewed_in_time(provider: Endpoint) -> None:
    now = 0.0
    login = ClientCredentials(provider.url, OPTIONS, clock=lambda: now)
    now = 79.0
    assert [login.token(), login.token()] == ["t1", "t1"]
    basic = "Basic " + base64.b64encode(b"me:hunter2").decode()
    fields = {"grant_type": ["client_credentials"], "scope": ["a b"]}
    ((_, headers, content),) = provider.came
    assert (headers["Authorization"], content) == (basic, fields)
    provider.body = json.dumps({"access_token": "t2"}).encode()
    now = 81.0
    assert [login.token(), login.token()] == ["t2", "t2"]
    # The second has no life, so each connection asks.
    assert len(provider.came) == 3
    assert login.extensions() == {"logicalCluster": "lkc-1"}
    assert "hunter2" not in repr(login)


@cases(
    ("claims", "subject"),
    ("a subject", b'{"sub": "caf\xc3\xa9"}', "caf\xe9"),
    ("no text", b'{"sub": 7}', None),
    ("empty", b'{"sub": ""}', None),
    ("no claims", b"[]", None),
    ("no JSON", b"\xff", None),
)
def test_the_subject_of_a_token_is_read(
    provider: Endpoint, claims: bytes, subject: str | None
) -> None:
    part = base64.urlsafe_b64encode(claims).decode().rstrip("=")
    provider.body = json.dumps({"access_token": f"e30.{part}.c2ln"}).encode()
    assert ClientCredentials(provider.url, OPTIONS).subject == subject


@pytest.mark.parametrize("token", ["t1", "a.b", "a.\xe4\xe4.c", ".."])
def test_a_token_that_is_opaque_has_no_subject(provider: Endpoint, token: str) -> None:
    provider.body = json.dumps({"access_token": token}).encode()
    assert ClientCredentials(provider.url, OPTIONS).subject is None


@cases(
    ("status", "body", "message"),
    ("401", 401, b'{"error": "invalid_client"}', "HTTP status 401, invalid_client"),
    ("a word that is none", 400, b'{"error": "<b>\\n"}', "HTTP status 400"),
    ("a redirect", 302, b"", "HTTP status 302"),
    ("a page", 200, b"<html>", "gave no access_token"),
    ("deep", 200, b"[" * 100_000, "gave no access_token"),
    ("no text", 200, b'{"access_token": 7}', "gave no access_token"),
)
def test_a_provider_that_gives_none_is_one_error(
    provider: Endpoint, status: int, body: bytes, message: str
) -> None:
    login = ClientCredentials(provider.url, OPTIONS, clock=lambda: 0.0)
    provider.status, provider.body = status, body
    provider.headers = {"Location": provider.url} if status == 302 else {}
    with pytest.raises(KafkaError) as raised:
        ClientCredentials(provider.url, OPTIONS)
    assert str(raised.value).endswith(message)
    assert len(provider.came) == 2
    assert "hunter2" not in str(raised.value)
    login._renew_at = 0
    # kafka-python takes this one for a refused login, and asks no further broker.
    with pytest.raises(SaslAuthenticationFailedError):
        login.token()


def test_a_provider_that_is_away_is_one_error() -> None:
    with pytest.raises(KafkaError, match=r"http://127\.0\.0\.1:1/token gave no token: "):
        ClientCredentials("http://127.0.0.1:1/token", OPTIONS)
