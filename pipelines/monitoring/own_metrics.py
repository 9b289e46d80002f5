"""The Prometheus metrics of quotaflow itself: the list of own_metrics.yaml, and what is in it.

In an expression `$name` is a bound of conf's section health, or `$max_age_s`, that of the problem
data_old.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Literal

import yaml
from pydantic import ConfigDict, TypeAdapter

from quotaflow.pipelines.areas.pipeline import MAX_AGE_S
from quotaflow.pipelines.config import HealthSection

PREFIX = "quotaflow_"
STAT: Literal["stat"] = "stat"
LINES: Literal["timeseries"] = "timeseries"


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule of Prometheus: fires once `expr` has had rows `for_` long.

    `severity` is critical where data are lost or the cluster keeps a config too long meanwhile.
    `steps` say what to do, in Markdown; commands are between backticks.
    """

    name: str
    expr: str
    for_: str
    severity: Literal["critical", "warning"]
    summary: str
    description: str
    steps: tuple[str, ...]
    problem: str | None = None
    """The code of the problem of the tables that it is about: other surfaces show it too."""

    def expression(self, bounds: HealthSection) -> str:
        """The expression with the thresholds of conf."""
        return with_bounds(self.expr, bounds)


@dataclass(frozen=True, slots=True)
class Chart:
    """A panel of the dashboard: a number, or lines over time.

    `expr` is the metric itself where it is empty. `unit` is Grafana's. Values are bad from `bad` on
    (`$name` for a bound of conf), or, with `low_is_bad`, below it.
    """

    title: str
    unit: str = "short"
    kind: Literal["stat", "timeseries"] = LINES
    expr: str = ""
    legend: str = "{{quotaflow_job}}"
    bad: str = ""
    low_is_bad: bool = False


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """A metric: `name` is without the prefix quotaflow_."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter"] = "gauge"
    alerts: tuple[Alert, ...] = ()
    chart: Chart | None = None

    @property
    def full_name(self) -> str:
        """The name as Prometheus has it."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"


def with_bounds(text: str, bounds: HealthSection) -> str:
    """A text with the thresholds of conf; other words with a $ are those of Prometheus."""
    return Template(text).safe_substitute(bounds.model_dump(), max_age_s=MAX_AGE_S)


_TEXT = files("quotaflow.pipelines.monitoring").joinpath("own_metrics.yaml").read_text("utf-8")
_EVERY = TypeAdapter(tuple[OwnMetric, ...], config=ConfigDict(extra="forbid"))
OWN_METRICS = {metric.name: metric for metric in _EVERY.validate_python(yaml.safe_load(_TEXT))}
"""Every metric by its name without the prefix."""


def alerts() -> Iterator[Alert]:
    """Every alert, in the order of the metrics."""
    for metric in OWN_METRICS.values():
        yield from metric.alerts
