"""Own metrics and their alerts in words: the runbook page, and the tables of docs/operate.md.

python -m quotaflow.pipelines.monitoring.runbook writes both in the current checkout.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring import own_metrics
from quotaflow.pipelines.monitoring.own_metric import Alert, OwnMetric
from quotaflow.pipelines.monitoring.own_metrics import OWN_METRICS
from quotaflow.udfs.counted import counted

PAGE = "docs/runbook.md"
OPERATE = "docs/operate.md"
_BEGIN = "<!-- Made by python -m quotaflow.pipelines.monitoring.runbook from own_metrics.py -->\n"
_END = "<!-- end -->\n"
_BETWEEN = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_WORDS = {"value": "N", "quotaflow_job": "X", "table": "a table", "reason": "the reason"}
_VARIABLE = re.compile(r"\{\{ \$(?:labels\.)?(\w+)(?: \| \w+)? \}\}")
_HEAD = f"""\
{_BEGIN}
# Runbook: what each alert asks for

For people on call for quotaflow itself. `quotaflow metrics --rules` prints these alerts for
Prometheus, with a link to the section here in `runbook_url`. Bounds below are the defaults of conf.
"""


def anchor(alert: Alert) -> str:
    """Where the page has the alert."""
    return alert.name.lower()


def page() -> str:
    """The runbook, in Markdown."""
    return "\n".join([_HEAD, *(_section(alert) for alert in own_metrics.alerts())])


def tables() -> str:
    """The metrics, then the alerts, as tables in Markdown between two comments."""
    metrics = ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    metrics += map(_metric_row, OWN_METRICS.values())
    alerts = ["| alert | severity | fires if | for |", "| --- | --- | --- | --- |"]
    alerts += map(_alert_row, own_metrics.alerts())
    return "\n".join([_BEGIN, *metrics, "", *alerts, "", _END])


def with_tables(text: str) -> str:
    """The text of docs/operate.md with the tables of now. Raises ValueError without a place."""
    whole, count = _BETWEEN.subn(lambda _: tables(), text)
    if count != 1:
        raise ValueError(
            f"{OPERATE} has {counted(count, 'place')} for the tables of metrics, and needs one"
        )
    return whole


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


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    operate = root / OPERATE
    yield root / PAGE, page()
    yield operate, with_tables(operate.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for file, written in _files(Path.cwd()):
        file.write_text(written, encoding="utf-8")
