"""Own metrics as OTLP over HTTP, with a real server that decodes them by protobuf."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import otlp_export
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...cases import cases
from ...delta_tables import NOON
from ...http_endpoint import Endpoint, listening
from ...rows import batch
from ...schemas.views.view_tables import make_tables

TOKEN = "Bearer TOPSECRET"
PATH = "/v1/metrics"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with listening(PATH, ExportMetricsServiceRequest.FromString) as endpoint:
        endpoint.headers = {"Location": "http://127.0.0.1:1/"}
        yield endpoint


def conf_of(warehouse: Warehouse, url: str, **others: Any) -> Conf:
    target = {"url": url, "timeout_s": 60.0} | others
    kafka = {"cluster_id": "c1"}
    return Conf.model_validate(
        {"warehouse": warehouse.conf, "monitoring": {"otlp": target}, "kafka": kafka}
    )


def metrics_of(message: ExportMetricsServiceRequest) -> dict[str, Metric]:
    ((scope,),) = ([*each.scope_metrics] for each in message.resource_metrics)
    return {metric.name: metric for metric in scope.metrics}


def attributes(owner: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in owner.attributes}


def test_a_run_exports_what_prometheus_scrapes(
    endpoint: Endpoint, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTLP_TOKEN", TOKEN)
    make_tables(warehouse, {"query_progress": [batch(0, 3)]})
    notes: list[str] = []
    conf = conf_of(warehouse, endpoint.url, headers={"Authorization": "env:OTLP_TOKEN"})
    with otlp_export.exported(conf, notes.append):
        assert endpoint.came == []
    ((path, headers, message),) = endpoint.came
    assert (path, headers["Authorization"]) == (PATH, TOKEN)
    assert headers["Content-Type"] == "application/x-protobuf"
    resource = attributes(message.resource_metrics[0].resource)
    assert (resource["service.name"], resource["kafka.cluster.id"]) == ("quotaflow", "c1")
    metrics = metrics_of(message)
    (up,) = metrics["quotaflow_up"].gauge.data_points
    assert up.as_double == 1
    (problems,) = metrics["quotaflow_job_problems"].gauge.data_points
    assert attributes(problems) == {"quotaflow_job": "facts"}
    assert notes == []


def test_families_as_otlp() -> None:
    rows = CounterMetricFamily("quotaflow_rows", "Rows", labels=["job", "reason"])
    rows.add_metric(["facts", ""], 10)
    free = GaugeMetricFamily("quotaflow_disk_free_ratio", "Share", labels=["disk"])
    free.add_metric(["tables"], 0.5)
    nothing = GaugeMetricFamily("quotaflow_job_state_bytes", "Memory", labels=["job"])
    metrics = metrics_of(otlp_export.request([rows, free, nothing], None, NOON))
    assert metrics.keys() == {"quotaflow_rows", "quotaflow_disk_free_ratio"}
    total = metrics["quotaflow_rows"].sum
    assert total.is_monotonic
    assert total.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = total.data_points
    assert (point.as_double, attributes(point)) == (10, {"job": "facts"})
    noon = int(NOON.timestamp()) * 10**9
    assert (point.start_time_unix_nano, point.time_unix_nano) == (noon - 43_200 * 10**9, noon)
    share = metrics["quotaflow_disk_free_ratio"]
    assert (share.unit, share.gauge.data_points[0].as_double) == ("1", 0.5)


def exporter(endpoint: Endpoint, notes: list[str], warehouse: Warehouse) -> otlp_export.Exporter:
    conf = conf_of(warehouse, endpoint.url)
    assert conf.monitoring.otlp is not None
    return otlp_export._exporter(conf, conf.monitoring.otlp, notes.append)


REJECTED = ExportMetricsServiceResponse(partial_success={"rejected_data_points": 3})


@cases(
    ("answers", "body", "problem"),
    ("it is down", [503, 503], b"", "the endpoint answered 503"),
    ("a redirect is not followed", [302, 302], b"", "the endpoint answered 302"),
    ("no rights", [401, 401], TOKEN.encode(), "the endpoint answered 401"),
    ("rejected", [], REJECTED.SerializeToString(), "the endpoint rejected 3 data points"),
    ("an answer that is no protobuf", [], b"\xff" * 200_000, None),
)
def test_a_problem_is_said_once(
    endpoint: Endpoint, warehouse: Warehouse, answers: list[int], body: bytes, problem: str | None
) -> None:
    notes: list[str] = []
    sender = exporter(endpoint, notes, warehouse)
    endpoint.answers, endpoint.body = answers, body
    for _ in range(2):
        sender.export(NOON)
    endpoint.body = b""
    sender.export(NOON)
    expected = [f"monitoring.otlp: {problem}", "monitoring.otlp: metrics are taken again"]
    assert notes == (expected if problem else [])
    assert len(endpoint.came) == 3
    assert "TOPSECRET" not in repr(sender)


def test_an_endpoint_that_does_not_answer_ends_no_run(
    endpoint: Endpoint, warehouse: Warehouse
) -> None:
    notes: list[str] = []
    let_go = threading.Event()
    endpoint.before = lambda: bool(let_go.wait()) and None
    with otlp_export.exported(conf_of(warehouse, endpoint.url, timeout_s=0.2), notes.append):
        pass
    let_go.set()
    assert notes == ["monitoring.otlp: the endpoint was not reached: ReadTimeoutError"]


@cases(
    ("url", "headers", "message"),
    ("plain", "http://collector:4318/", {"A": "env:OTLP_TOKEN"}, "https only"),
    ("a login", "https://me:pw@collector/", {}, "has a login"),
    ("no scheme", "collector:4318", {}, "is no address"),
    ("a file", "file:///etc/passwd", {}, "is no address"),
    ("no such secret", "env:NO_SUCH_NAME", {}, "NO_SUCH_NAME is not set"),
)
def test_addresses_that_are_refused(
    warehouse: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    headers: dict[str, str],
    message: str,
) -> None:
    monkeypatch.setenv("OTLP_TOKEN", TOKEN)
    conf = conf_of(warehouse, url, headers=headers)
    with (
        pytest.raises(ConfigError, match=message) as raised,
        otlp_export.exported(conf, lambda _: None),
    ):
        pass
    assert "TOPSECRET" not in str(raised.value)
    assert "me:pw" not in str(raised.value)
