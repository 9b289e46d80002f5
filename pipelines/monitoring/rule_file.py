"""The alerts on quotaflow's own metrics, and on answers, as a rule file of Prometheus."""

from typing import Any

import yaml

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring import answer_metrics, own_metrics, runbook
from quotaflow.pipelines.monitoring.own_metrics import Alert

_HEAD = """\
# Alerts on quotaflow itself, and on answers that conf exports (monitoring.export), made by
# `quotaflow metrics --rules`. Bounds on quotaflow itself are those of conf
# (health). Bounds on answers are the same in each file: change them here.
# Check the file: promtool check rules FILE. Name it in rule_files of prometheus.yml.
"""


def text(bounds: HealthSection, runbooks: str = "") -> str:
    """The file. `runbooks` is the address of the runbook; without one it is PAGE of runbook.py."""
    page = runbooks or runbook.PAGE
    groups = [
        {"name": name, "rules": [_rule(alert, bounds, page) for alert in alerts]}
        for name, alerts in (
            ("quotaflow", own_metrics.alerts()),
            ("quotaflow_answers", answer_metrics.alerts()),
        )
    ]
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=100)


def _code(alert: Alert) -> dict[str, str]:
    """The code by which other surfaces show the problem."""
    return {} if alert.problem is None else {"code": alert.problem}


def _rule(alert: Alert, bounds: HealthSection, page: str) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression(bounds),
        "for": alert.for_,
        "labels": {"severity": alert.severity} | _code(alert),
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": f"{page}#{runbook.anchor(alert)}",
        },
    }
