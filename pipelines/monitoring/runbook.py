"""Metrics and their alerts in words: the runbook, and the page of metrics."""

import re
from collections.abc import Iterator

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring import answer_metrics, own_metrics
from quotaflow.pipelines.monitoring.own_metrics import OWN_METRICS, Alert, OwnMetric

PAGE = "docs/reference/runbook.md"
_WORDS = {"value": "N", "quotaflow_job": "X", "table": "a table", "reason": "the reason"}
_VARIABLE = re.compile(r"\{\{ \$(?:labels\.)?(\w+)(?: \| \w+)? \}\}")
_HEAD = """\
# Runbook: what each alert means and what to do

This page is for people on call for quotaflow and its cluster. `quotaflow metrics --rules` prints
these alerts for Prometheus, with a link to the section here in `runbook_url`. Bounds below on
quotaflow itself are the defaults of conf. Those on answers are the same for every conf.
"""
_METRICS_HEAD = """\
# Metrics of quotaflow itself and of answers, and their alerts

This page is a reference for engineers who build dashboards and alerts:
[how to export the metrics](../operate.md#metrics).
"""
_ANSWERS_HEAD = """
## Metrics of answers

Those of the answers that conf names in `monitoring.export`. Labels have names that clients chose.
"""
_BOUNDS_HEAD = """
A row of an answer is a metric while it is past the bound of conf, or this one:
"""
_ALERTS_HEAD = """
## Alerts
"""


def anchor(alert: Alert) -> str:
    """Where the page has the alert."""
    return alert.name.lower()


def page() -> str:
    """The runbook, in Markdown."""
    return "\n".join([_HEAD, *map(_section, _alerts())])


def metrics_page() -> str:
    """The metrics, those of answers, then the alerts, in Markdown."""
    head = ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    own = map(_metric_row, [*OWN_METRICS.values(), *answer_metrics.ABOUT_EXPORTS])
    rows = map(_metric_row, answer_metrics.metrics())
    bounds = (
        f"- `{each.answer}`: `quotaflow_{each.metrics[0].name}` above {each.above:g}; `names` are "
        f"those of `{each.named_by}`"
        for each in answer_metrics.ANSWERS.values()
    )
    alerts = ["| alert | severity | fires if | for |", "| --- | --- | --- | --- |"]
    alerts += map(_alert_row, _alerts())
    of_answers = [_ANSWERS_HEAD, *head, *rows, _BOUNDS_HEAD, *bounds]
    return "\n".join([_METRICS_HEAD, *head, *own, *of_answers, _ALERTS_HEAD, *alerts, ""])


def _alerts() -> Iterator[Alert]:
    yield from own_metrics.alerts()
    yield from answer_metrics.alerts()


def _section(alert: Alert) -> str:
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(alert.steps, 1))
    return (
        f"## {alert.name}\n\n{in_words(alert.summary)}. {in_words(alert.description)}\n\n"
        f"Severity {alert.severity}, after {alert.for_} of `{_expression(alert)}`.\n\n{steps}\n"
    )


def in_words(text: str) -> str:
    """A text without a firing alert: names of variables in place of their values."""
    return _VARIABLE.sub(lambda match: _WORDS.get(match[1], match[1]), text)


def _expression(alert: Alert) -> str:
    return alert.expression(HealthSection())


def _metric_row(metric: OwnMetric) -> str:
    labels = "".join(f" `{label}`" for label in metric.labels)
    return f"| `{metric.full_name}` | {metric.kind} |{labels} | {metric.meaning} |"


def _alert_row(alert: Alert) -> str:
    expression = _expression(alert).replace("|", "\\|")
    link = f"[{alert.name}](runbook.md#{anchor(alert)})"
    return f"| {link} | {alert.severity} | `{expression}` | {alert.for_} |"
