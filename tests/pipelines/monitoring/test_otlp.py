"""Metrics by OTLP: what a Collector receives from the SDK's exporter, as OTEL_* variables say."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.monitoring import Export, MonitoringSection
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.monitoring import prometheus
from quotaflow.pipelines.monitoring.own_metrics import OWN_METRICS
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...http_endpoint import Endpoint, listening
from ...rows import at
from ...schemas.views.view_tables import make_table


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with listening("/v1/metrics", gzip.decompress) as endpoint:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", endpoint.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope=team")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        yield endpoint


def conf_of(warehouse: Warehouse) -> Conf:
    lag = {"cluster_id": "c1", "group_id": "a", "topic": "t", "partition": 0, "lag": 42}
    make_table(warehouse, TABLES["group_lag"], [lag | {"position_known_at": at(0)}])
    exports = MonitoringSection(export=[Export(answer="group_lag")])
    return Conf(warehouse=warehouse.conf, monitoring=exports)


def received(endpoint: Endpoint) -> tuple[dict[str, str], dict[str, Any]]:
    """The attributes of the resource, and the metrics of the last request by name."""
    request = ExportMetricsServiceRequest.FromString(endpoint.came[-1][2])
    (of_resource,) = request.resource_metrics
    (scope,) = of_resource.scope_metrics
    attributes = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    return attributes, {metric.name: metric for metric in scope.metrics}


def test_all_metrics_are_exported_at_the_end(warehouse: Warehouse, collector: Endpoint) -> None:
    with prometheus.exposed(conf_of(warehouse), None, None, by_otlp=True):
        assert collector.came == []
    ((path, headers, _),) = collector.came
    assert (path, headers["x-scope"], headers["Content-Encoding"]) == (
        "/v1/metrics",
        "team",
        "gzip",
    )
    attributes, metrics = received(collector)
    assert (
        attributes.items()
        >= {
            "service.name": "quotaflow",
            "deployment.environment": "test",
        }.items()
    )
    assert metrics["quotaflow_up"].gauge.data_points[0].as_double == 1.0
    assert metrics["quotaflow_up"].description == OWN_METRICS["up"].meaning
    (point,) = metrics["quotaflow_group_lag_records"].gauge.data_points
    assert point.as_double == 42.0
    labels = {each.key: each.value.string_value for each in point.attributes}
    assert labels == {"cluster_id": "c1", "group_id": "a", "topic": "t"}


def test_an_answer_that_may_change_is_tried_again(
    warehouse: Warehouse, collector: Endpoint
) -> None:
    collector.answers = [503]
    with prometheus.exposed(conf_of(warehouse), None, None, by_otlp=True):
        pass
    assert len(collector.came) == 2


def test_a_collector_that_is_away_fails_nothing(
    warehouse: Warehouse, collector: Endpoint, tmp_path: Path
) -> None:
    collector.status = 400
    file = tmp_path / "quotaflow.prom"
    with prometheus.exposed(conf_of(warehouse), None, file, by_otlp=True):
        pass
    assert "quotaflow_up 1.0" in file.read_text(encoding="utf-8")


def test_without_the_sdk_it_says_what_to_install(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics", None)
    with (
        pytest.raises(MissingToolError, match=r"OpenTelemetry's SDK is not installed.*otlp"),
        prometheus.exposed(Conf(warehouse=warehouse.conf), None, None, by_otlp=True),
    ):
        pass
