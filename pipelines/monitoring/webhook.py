"""Posts JSON to the address of conf's alerts.webhook: https, bounded, never to somewhere else.

The address is a secret: whoever knows it can post. It stands in no message, error or log.
"""

import ipaddress
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Retry, Timeout, parse_url

from quotaflow.pipelines.config import secrets
from quotaflow.pipelines.config.alerts import Webhook
from quotaflow.pipelines.errors import ConfigError, QuotaflowError

_KEY = "alerts.webhook.url"
_AGAIN = (429, 500, 502, 503, 504)
_OK, _REDIRECT, _REFUSAL = 200, 300, 400
_BACKOFF_S, _MOST_BACKOFF_S = 0.5, 10.0


class UnreachedError(QuotaflowError):
    """The webhook did not answer, or not well: what was not told waits for the next run."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """An address that was checked, and the connections to it."""

    url: str = field(repr=False)
    pool: urllib3.PoolManager

    def post(self, key: str, body: Mapping[str, Any]) -> str | None:
        """Post one object; why it was refused, None where it was taken.

        Raises UnreachedError when there is no answer after some tries: others would wait as long.
        """
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        content = json.dumps(body, allow_nan=False).encode()
        try:
            # What it answers is nobody's business, and may have no end: it is not read.
            answer = self.pool.request(
                "POST", self.url, body=content, headers=headers, preload_content=False
            )
        except HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise UnreachedError(f"the webhook was not reached: {type(reason).__name__}") from None
        answer.close()
        return _problem(answer.status)


def receiver(conf: Webhook) -> Receiver:
    """Who is told. Raises ConfigError for an address that may not be used, without repeating it."""
    # It warns of each retry with the path, which is the secret.
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    url = secrets.look_up(_KEY, conf.url).strip()
    _check(url)
    retries = Retry(
        total=conf.max_attempts - 1,
        redirect=False,
        status_forcelist=_AGAIN,
        allowed_methods=("POST",),
        backoff_factor=_BACKOFF_S,
        backoff_max=_MOST_BACKOFF_S,
        # Whoever answers must not say how long a job sleeps.
        respect_retry_after_header=False,
        raise_on_status=False,
    )
    timeout = Timeout(connect=conf.timeout_s, read=conf.timeout_s)
    agent = {"User-Agent": "quotaflow"}
    return Receiver(url, urllib3.PoolManager(retries=retries, timeout=timeout, headers=agent))


def _check(url: str) -> None:
    try:
        parts = parse_url(url)
    except LocationParseError:
        raise ConfigError(f"{_KEY} does not refer to an address: https://host/path") from None
    if not parts.host or parts.scheme not in {"http", "https"}:
        raise ConfigError(f"{_KEY} does not refer to an address: https://host/path")
    if parts.auth is not None:
        raise ConfigError(f"{_KEY} refers to an address with a login in it: leave that out")
    if parts.scheme == "http" and not _is_loopback(parts.host):
        raise ConfigError(f"{_KEY} refers to plain http: only https, but for this machine itself")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _problem(status: int) -> str | None:
    if status in _AGAIN:
        raise UnreachedError(f"the webhook answered {status} each time")
    if _REDIRECT <= status < _REFUSAL:
        raise UnreachedError(
            f"the webhook answered {status}: a redirect is not followed, name the address it means"
        )
    return None if _OK <= status < _REDIRECT else f"it answered {status}"
