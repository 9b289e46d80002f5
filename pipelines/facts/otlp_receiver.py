"""Posts requests of OTLP over HTTP: bounded, without redirects, and what is refused is counted.

Neither the address nor a header is in a message, error or log.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import urllib3
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from urllib3.exceptions import HTTPError

from quotaflow.pipelines.config import addresses, secrets
from quotaflow.pipelines.config.monitoring import Forward
from quotaflow.pipelines.errors import ConfigError, ReceiverAwayError

_KEY = "monitoring.forward"
_RETRIED = (429, 502, 503, 504)
"""What OTLP lets a client send again."""
_WRONG = (301, 302, 303, 307, 308, 401, 403, 404, 405, 407)
"""Answers to the address or the login: not this request is refused, but each."""
_OK, _REDIRECT = 200, 300
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
        pool = addresses.connections(
            {**self.headers, **_OTLP},
            _RETRIED,
            timeout_s=self.timeout_s,
            max_attempts=self.max_attempts,
            respects_wait=True,
        )
        return OtlpReceiver(self.url, pool, self.timeout_s)


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


@dataclass(frozen=True, slots=True)
class OtlpReceiver:
    """A receiver, and the connections to it."""

    url: str = field(repr=False)
    pool: urllib3.PoolManager = field(repr=False)
    timeout_s: float

    def send(self, body: bytes, points: int) -> tuple[int, str]:
        """Post a request; returns how many of its points were refused, and why.

        Raises ReceiverAwayError after the last attempt.
        """
        try:
            answer = self.pool.request("POST", self.url, body=body, preload_content=False)
        except HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise ReceiverAwayError(_away(f"was not reached: {type(reason).__name__}")) from None
        # The status decides. Without its body, a request that was taken was taken whole.
        content = _content(answer, time.monotonic() + self.timeout_s)
        if answer.status in _RETRIED:
            raise ReceiverAwayError(_away(f"answered {answer.status} each time"))
        if answer.status in _WRONG:
            raise ReceiverAwayError(
                _away(f"answered {answer.status}: correct {_KEY}.url or {_KEY}.headers")
            )
        if not _OK <= answer.status < _REDIRECT:
            return points, f"answer_{answer.status}"
        return min(_rejected(content), points), "partial_success"


def _content(answer: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """The body of an answer; none if it is long, slow or cut: it may be endless."""
    content = b""
    try:
        while part := answer.read1(_MAX_ANSWER_BYTES):
            content += part
            if len(content) > _MAX_ANSWER_BYTES or time.monotonic() > deadline:
                answer.close()
                return b""
    except HTTPError:
        answer.close()
        return b""
    answer.release_conn()
    return content


def _away(what: str) -> str:
    return f"the receiver of {_KEY} {what}"


def _rejected(content: bytes) -> int:
    """The points that a receiver rejected of a request that it took."""
    try:
        answer = ExportMetricsServiceResponse.FromString(content)
    except DecodeError:
        return 0
    return max(answer.partial_success.rejected_data_points, 0)
