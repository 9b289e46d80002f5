"""Metrics by OTLP: the exporter of OpenTelemetry's SDK sends them once a minute, and at the end.

Its OTEL_* variables say where to, with which headers, certificates and compression.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines import extras
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.monitoring import answer_metrics
from quotaflow.pipelines.monitoring.own_metrics import OWN_METRICS, PREFIX

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

Collect = Callable[[], list[Any]]
"""Reads the families of prometheus_client; the tables once for all that ask within seconds."""
_NAME = "quotaflow"


@contextmanager
def exported(collect: Collect) -> Iterator[None]:
    """Export what is collected until the block ends, and then a last time.

    Raises MissingToolError without the SDK.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415  extra
            OTLPMetricExporter,
        )
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
    except ImportError:
        raise MissingToolError(
            f"OpenTelemetry's SDK is not installed: {extras.install('otlp')}"
        ) from None
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    # A variable that names another service wins.
    resource = Resource({"service.name": _NAME}).merge(OTELResourceDetector().detect())
    provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
    meter = provider.get_meter(_NAME)
    own = (*OWN_METRICS.values(), *answer_metrics.ABOUT_EXPORTS)
    for metric in (*own, *answer_metrics.metrics()):
        is_counter = metric.kind == "counter"
        make = meter.create_observable_counter if is_counter else meter.create_observable_gauge
        name = f"{PREFIX}{metric.name}"
        make(name, [partial(_observed, collect, name)], description=metric.meaning)
    try:
        yield
    finally:
        provider.shutdown()


def _observed(collect: Collect, name: str, _: "CallbackOptions") -> "Iterator[Observation]":
    """The samples of a metric."""
    from opentelemetry.metrics import Observation  # noqa: PLC0415  an extra

    for family in collect():
        if family.name == name:
            for sample in family.samples:
                yield Observation(float(sample.value), sample.labels)
