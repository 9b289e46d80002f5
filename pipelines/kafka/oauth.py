"""Tokens of an identity provider for kafka-python: OAuth 2.0 client credentials (RFC 6749, 4.4)."""

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from threading import Lock
from typing import Any

import urllib3
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from quotaflow.pipelines.config import logins
from quotaflow.pipelines.errors import ConfigError, KafkaError

_WITHIN = urllib3.Timeout(connect=5.0, read=10.0)
_MOST_BYTES = 1 << 20
_RENEWED_AT = 0.8
"""The part of a token's life after which it is renewed, as in Java's client."""


class ClientCredentials(AbstractTokenProvider):
    """Gets a token from the provider's token address, and renews it before it expires.

    The first one is fetched at once: a provider that refuses is one error before any broker is
    asked. Raises KafkaError then, and later an error that kafka-python takes for a refused login.
    """

    def __init__(
        self, url: str, options: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._url, self._options, self._clock = url, options, clock
        self._http = _http(url, options.get("ssl.truststore.location"))
        self._lock = Lock()
        self._fetch()

    def __repr__(self) -> str:
        return f"ClientCredentials({self._url})"

    def token(self) -> str:
        """A token that is valid now."""
        with self._lock:
            if self._clock() >= self._renew_at:
                try:
                    self._fetch()
                except KafkaError as error:
                    raise SaslAuthenticationFailedError(str(error)) from None
            return self._token

    @property
    def subject(self) -> str | None:
        """The claim `sub` of the token (RFC 7519), by which brokers name a login by default.

        None for a token that only its provider can read.
        """
        _, _, rest = self._token.partition(".")
        with suppress(ValueError):
            claims = _json(base64.urlsafe_b64decode(rest.partition(".")[0] + "=="))
            subject = claims.get("sub")
            return subject if isinstance(subject, str) and subject else None
        return None

    def extensions(self) -> dict[str, str]:
        """The SASL extensions of the login, such as Confluent Cloud's logicalCluster."""
        return logins.extensions(self._options)

    def _fetch(self) -> None:
        answer = self._answer()
        token = answer.get("access_token")
        if not isinstance(token, str) or not token:
            raise KafkaError(f"{self._url} gave no access_token")
        life_s = answer.get("expires_in")
        # A life that is not named is not guessed: the next connection asks again.
        known_s = life_s if isinstance(life_s, int | float) else 0
        self._token = token
        self._renew_at = self._clock() + known_s * _RENEWED_AT

    def _answer(self) -> dict[str, Any]:
        login = f"{self._options['clientId']}:{self._options['clientSecret']}"
        fields = {"grant_type": "client_credentials"}
        if self._options.get("scope"):
            fields["scope"] = self._options["scope"]
        try:
            response = self._http.request(
                "POST",
                self._url,
                fields=fields,
                encode_multipart=False,
                headers={
                    "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}",
                    "Accept": "application/json",
                },
                preload_content=False,
                # A redirect would give the secret to another address.
                redirect=False,
                retries=False,
            )
            with response:
                content, status = response.read(_MOST_BYTES), response.status
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise KafkaError(f"{self._url} gave no token: {_why(error)}") from None
        parsed = _json(content)
        if status != HTTPStatus.OK:
            code = parsed.get("error")
            named = f", {code}" if isinstance(code, str) and code.isidentifier() else ""
            raise KafkaError(f"{self._url} gave no token: HTTP status {status}{named}")
        return parsed


def _http(url: str, ca_file: str | None) -> urllib3.PoolManager:
    if ca_file is None or not url.startswith("https:"):
        return urllib3.PoolManager(timeout=_WITHIN)
    try:
        trust = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ConfigError(
            f"https.ca.location {ca_file} cannot be read: {error.strerror or error}; it must be PEM"
        ) from None
    return urllib3.PoolManager(timeout=_WITHIN, ssl_context=trust)


def _json(content: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return " ".join(str(reason or error).split())[:200]
