"""Every Prometheus metric of quotaflow itself: the list of own_metrics.yaml."""

from collections.abc import Iterator
from importlib.resources import files

import yaml
from pydantic import ConfigDict, TypeAdapter

from quotaflow.pipelines.monitoring.own_metric import Alert, OwnMetric

_TEXT = files(__package__).joinpath("own_metrics.yaml").read_text(encoding="utf-8")
_EVERY = TypeAdapter(tuple[OwnMetric, ...], config=ConfigDict(extra="forbid"))
OWN_METRICS = {metric.name: metric for metric in _EVERY.validate_python(yaml.safe_load(_TEXT))}
"""Every metric by its name without the prefix."""


def alerts() -> Iterator[Alert]:
    """Every alert, in the order of the metrics."""
    for metric in OWN_METRICS.values():
        yield from metric.alerts
