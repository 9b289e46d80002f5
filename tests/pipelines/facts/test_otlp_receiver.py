"""Requests of OTLP to a receiver that takes, refuses, delays or does not answer."""

import logging
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)

from quotaflow.pipelines import config
from quotaflow.pipelines.config import addresses
from quotaflow.pipelines.config.monitoring import Forward
from quotaflow.pipelines.errors import ConfigError, ReceiverAwayError
from quotaflow.pipelines.facts import otlp_receiver

from ...cases import cases
from ...http_endpoint import Endpoint, listening

TOKEN = "Bearer hunter2"
POINTS = 7


def partly(rejected: int) -> bytes:
    part = ExportMetricsPartialSuccess(rejected_data_points=rejected, error_message="too old")
    return ExportMetricsServiceResponse(partial_success=part).SerializeToString()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with listening("/v1/hunter2") as endpoint:
        monkeypatch.setenv("OTLP_URL", endpoint.url)
        monkeypatch.setenv("OTLP_TOKEN", TOKEN)
        monkeypatch.setattr(addresses, "_BACKOFF_S", 0.0)
        yield endpoint


def forward(**others: Any) -> Forward:
    given = {"url": "env:OTLP_URL", "headers": {"Authorization": "env:OTLP_TOKEN"}}
    return Forward(**{**given, "timeout_s": 2.0, **others})


def outcome(**others: Any) -> tuple[int, str] | str:
    """What was refused, or the error, of one request."""
    receiver = pickle.loads(pickle.dumps(otlp_receiver.endpoint(forward(**others)))).open()
    try:
        refused, why = receiver.send(b"body", POINTS)
    except ReceiverAwayError as error:
        return str(error).removeprefix("the receiver of monitoring.forward ")
    return refused, why


WRONG = "correct monitoring.forward.url or monitoring.forward.headers"


@cases(
    ("answers", "body", "expected", "came"),
    ("accepted", [200], b"", (0, "partial_success"), 1),
    ("a part", [200], partly(3), (3, "partial_success"), 1),
    ("more than there were", [200], partly(2**40), (POINTS, "partial_success"), 1),
    ("fewer than none", [200], partly(-2), (0, "partial_success"), 1),
    ("an answer that is no OTLP", [200], b"<html>", (0, "partial_success"), 1),
    ("refused", [400], b"", (POINTS, "answer_400"), 1),
    ("too large", [413], b"", (POINTS, "answer_413"), 1),
    ("a fault of its own", [500], b"", (POINTS, "answer_500"), 1),
    ("busy once", [429, 200], b"", (0, "partial_success"), 2),
    ("busy each time", [503] * 9, b"", "answered 503 each time", 3),
    ("a wrong token", [401], b"", f"answered 401: {WRONG}", 1),
    ("moved", [307], b"", f"answered 307: {WRONG}", 1),
)
def test_each_answer_has_its_outcome(
    server: Endpoint, answers: list[int], body: bytes, expected: Any, came: int
) -> None:
    server.answers, server.body = list(answers), body
    assert outcome() == expected
    assert [each[2] for each in server.came] == [b"body"] * came
    path, headers, _ = server.came[0]
    assert (path, headers["Authorization"]) == ("/v1/hunter2", TOKEN)
    form = (headers["Content-Type"], headers["Content-Encoding"])
    assert form == ("application/x-protobuf", "gzip")


@cases(
    ("given", "least", "most"),
    ("some seconds", "1", 1.0, 5.0),
    ("longer than we wait", "3600", 1.5, 5.0),
)
def test_a_receiver_says_when_to_come_again_within_a_bound(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch, given: str, least: float, most: float
) -> None:
    monkeypatch.setattr(addresses, "_MAX_WAIT_S", 1.5)
    server.answers, server.headers = [429, 200], {"Retry-After": given}
    since = time.monotonic()
    assert outcome() == (0, "partial_success")
    assert least <= time.monotonic() - since < most


def test_a_receiver_that_is_down_or_slow_is_away_after_a_bounded_time(server: Endpoint) -> None:
    server.before = lambda: time.sleep(0.6)
    since = time.monotonic()
    assert outcome(timeout_s=0.2, max_attempts=2) == "was not reached: ReadTimeoutError"
    assert time.monotonic() - since < 3
    server.shutdown()
    server.server_close()
    assert str(outcome(timeout_s=0.2, max_attempts=2)).startswith("was not reached: ")


@cases(
    ("pause_s", "expected"),
    # The status has 17 bytes: it decides if it comes in time, though other headers do not.
    ("the status comes too slowly", 0.2, "was not reached: ProtocolError"),
    ("headers come too slowly", 0.02, (0, "partial_success")),
)
def test_an_answer_whose_head_comes_byte_by_byte_ends_in_time(
    server: Endpoint, pause_s: float, expected: Any
) -> None:
    server.headers, server.head_pause_s = {"X": "x" * 300}, pause_s
    since = time.monotonic()
    assert outcome(timeout_s=0.5, max_attempts=2) == expected
    assert time.monotonic() - since < 4


@cases(
    ("status", "pause_s", "expected"),
    ("accepted, and bytes come slowly", 200, 0.2, (0, "partial_success")),
    ("accepted, and no byte comes in time", 200, 0.8, (0, "partial_success")),
    ("refused, and bytes come slowly", 400, 0.2, (POINTS, "answer_400")),
    ("busy, and bytes come slowly", 503, 0.2, "answered 503 each time"),
)
def test_an_answer_counts_by_its_status_if_its_body_does_not_come_in_time(
    server: Endpoint, status: int, pause_s: float, expected: Any
) -> None:
    server.status, server.body, server.pause_s = status, partly(3) * 9, pause_s
    since = time.monotonic()
    assert outcome(timeout_s=0.5, max_attempts=2) == expected
    assert time.monotonic() - since < 4


def test_no_secret_is_in_a_log_an_error_or_a_text(
    server: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint = otlp_receiver.endpoint(forward())
    receiver = endpoint.open()
    server.answers = [503] * 9
    with pytest.raises(ReceiverAwayError) as caught:
        receiver.send(b"body", POINTS)
    texts = (caplog.text, repr(caught.value), repr(endpoint), repr(receiver))
    assert not [text for text in texts if "hunter2" in text]


@cases(
    ("given", "variables", "message"),
    ("no address", {}, {"OTLP_URL": "hunter2"}, "does not refer to an address"),
    ("plain http elsewhere", {}, {"OTLP_URL": "http://c:4318/hunter2"}, "plain http"),
    ("a login in it", {}, {"OTLP_URL": "https://u:hunter2@c/"}, "an address with a login"),
    ("a header of two lines", {}, {"OTLP_TOKEN": "a\nX: hunter2"}, "is no value of a header"),
    ("no secret", {"headers": {"A": "env:NO_SUCH"}}, {}, "NO_SUCH is not set"),
)
def test_an_endpoint_that_cannot_be_is_refused_without_its_secrets(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch, given: Any, variables: Any, message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message) as caught:
        otlp_receiver.endpoint(forward(**given))
    assert "hunter2" not in str(caught.value)
    assert server.came == []


def test_plain_http_to_another_machine_is_allowed_by_its_key(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTLP_URL", "http://collector:4318/v1/metrics")
    url = otlp_receiver.endpoint(forward(plain_http=True)).url
    assert (url, server.came) == ("http://collector:4318/v1/metrics", [])


@cases(
    ("given", "message"),
    ("a literal token", "headers: {Authorization: hunter2}", "write env:NAME or secret:scope/key"),
    ("a wrong header", "headers: {'A B': 'env:X'}", "write a name such as Authorization"),
    ("no address", "url: collector", "write https://HOST/v1/metrics"),
    ("an unknown key", "metric: [a]", "did you mean metrics"),
    ("no time", "max_batch_s: 0", "greater than or equal to 1"),
    ("too many wildcards", "metrics: ['a*b*c*d*e*f']", "at most 4 times"),
)
def test_a_conf_that_cannot_be_is_refused(given: str, message: str) -> None:
    text = given if "url" in given else f"url: 'env:X', {given}"
    with pytest.raises(ConfigError, match=message) as caught:
        config.load(overrides=[f"monitoring.forward={{{text}}}"])
    assert "hunter2" not in str(caught.value)
