"""Posts JSON to the address of a receiver: by https, bounded, without redirects.

The address is a secret: anyone who has it can post. No message, error or log contains it.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from quotaflow.pipelines.config import addresses
from quotaflow.pipelines.config.receivers import Receiver
from quotaflow.pipelines.errors import QuotaflowError

_RETRIED = (429, 500, 502, 503, 504)
_OK, _REDIRECT, _REFUSAL = 200, 300, 400


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an event was refused. `is_partial`: others at the same receiver accepted it."""

    problem: str
    is_partial: bool = False


class UnreachedError(QuotaflowError):
    """A receiver did not answer, or failed: events that were not sent wait for the next run."""


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address, and the connections to it."""

    url: str = field(repr=False)
    pool: urllib3.PoolManager

    def post(self, key: str, body: Any) -> Refusal | None:
        """Post one object; returns why it was refused, None if it was accepted.

        Raises UnreachedError after the last attempt, because each further event would wait as long.
        """
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        content = json.dumps(body, allow_nan=False).encode()
        try:
            # The answer's body is not read: it is not needed, and may be endless.
            answer = self.pool.request(
                "POST", self.url, body=content, headers=headers, preload_content=False
            )
        except HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise UnreachedError(f"it was not reached: {type(reason).__name__}") from None
        answer.close()
        return _problem(answer.status)


def address(conf: Receiver, url: str, key: str) -> Address:
    """An address of conf, whose key names it in errors.

    Raises ConfigError for a forbidden one, without repeating it.
    """
    url = addresses.checked(url, key)
    pool = addresses.connections(
        {"User-Agent": "quotaflow"},
        _RETRIED,
        timeout_s=conf.timeout_s,
        max_attempts=conf.max_attempts,
        # The receiver must not control how long a job sleeps.
        respects_wait=False,
    )
    return Address(url, pool)


def _problem(status: int) -> Refusal | None:
    if status in _RETRIED:
        raise UnreachedError(f"it answered {status} each time")
    if _REDIRECT <= status < _REFUSAL:
        raise UnreachedError(
            f"it answered {status}: redirects are not followed, configure their target"
        )
    return None if _OK <= status < _REDIRECT else Refusal(f"it answered {status}")
