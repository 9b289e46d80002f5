"""Posts requests of OTLP over HTTP: bounded, without redirects, and what is refused is counted.

Neither the address nor a header is in a message, error or log.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import urllib3
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from urllib3.exceptions import HTTPError
from urllib3.util import Retry, Timeout

from quotaflow.pipelines.config import addresses, secrets
from quotaflow.pipelines.config.monitoring import Forward
from quotaflow.pipelines.errors import ConfigError, ReceiverAwayError

_KEY = "monitoring.forward"
_RETRIED = (429, 502, 503, 504)
"""What OTLP lets a client send again."""
_WRONG = (301, 302, 303, 307, 308, 401, 403, 404, 405, 407)
"""Answers to the address or the login: not this request is refused, but each."""
_OK, _REDIRECT = 200, 300
_BACKOFF_S, _MAX_WAIT_S = 0.5, 10.0
_MAX_ANSWER_BYTES = 1 << 16
_OTLP = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "gzip",
    "User-Agent": "quotaflow",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A checked address and headers, looked up; it can be pickled."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float
    max_attempts: int

    def open(self) -> "OtlpReceiver":
        """The receiver, with connections of its own."""
        retries = _Retry(
            total=self.max_attempts - 1,
            redirect=False,
            status_forcelist=_RETRIED,
            allowed_methods=("POST",),
            backoff_factor=_BACKOFF_S,
            backoff_max=_MAX_WAIT_S,
            raise_on_status=False,
        )
        timeout = Timeout(connect=self.timeout_s, read=self.timeout_s)
        pool = urllib3.PoolManager(
            retries=retries, timeout=timeout, headers={**self.headers, **_OTLP}
        )
        return OtlpReceiver(self.url, pool)


def endpoint(conf: Forward) -> Endpoint:
    """The endpoint of conf. Raises ConfigError, without repeating a secret."""
    url = addresses.checked(conf.url, f"{_KEY}.url", plain_http=conf.plain_http)
    headers = {name: _header(name, given) for name, given in conf.headers.items()}
    return Endpoint(url, headers, conf.timeout_s, conf.max_attempts)


def _header(name: str, reference: str) -> str:
    key = f"{_KEY}.headers.{name}"
    text = secrets.look_up(key, reference).strip()
    if not (text.isascii() and text.isprintable()):
        raise ConfigError(f"{key}: {reference} is no value of a header: one line of ASCII")
    return text


class _Retry(Retry):
    """Waits as long as the receiver says, but not longer than we do by ourselves."""

    def get_retry_after(self, response: Any) -> float | None:
        given = super().get_retry_after(response)
        return None if given is None else min(given, _MAX_WAIT_S)


@dataclass(frozen=True, slots=True)
class OtlpReceiver:
    """A receiver, and the connections to it."""

    url: str = field(repr=False)
    pool: urllib3.PoolManager = field(repr=False)

    def refused(self, body: bytes, points: int) -> tuple[int, str]:
        """Post a request; returns how many of its points were refused, and why.

        Raises ReceiverAwayError after the last attempt.
        """
        try:
            answer = self.pool.request("POST", self.url, body=body, preload_content=False)
            content = answer.read(_MAX_ANSWER_BYTES)
        except HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise ReceiverAwayError(_away(f"was not reached: {type(reason).__name__}")) from None
        # Closed, if there is more to read: it may be endless.
        answer.close() if len(content) == _MAX_ANSWER_BYTES else answer.release_conn()
        if answer.status in _RETRIED:
            raise ReceiverAwayError(_away(f"answered {answer.status} each time"))
        if answer.status in _WRONG:
            raise ReceiverAwayError(
                _away(f"answered {answer.status}: correct {_KEY}.url or {_KEY}.headers")
            )
        if not _OK <= answer.status < _REDIRECT:
            return points, f"answer_{answer.status}"
        return min(_rejected(content), points), "partial_success"


def _away(what: str) -> str:
    return f"the receiver of {_KEY} {what}"


def _rejected(content: bytes) -> int:
    """The points that a receiver rejected of a request that it took."""
    try:
        answer = ExportMetricsServiceResponse.FromString(content)
    except DecodeError:
        return 0
    return max(answer.partial_success.rejected_data_points, 0)
