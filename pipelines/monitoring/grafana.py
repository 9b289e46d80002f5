"""The charts of own_metrics.yaml as a dashboard of Grafana, to be imported.

It has neither an id nor a uid: Grafana gives both at import. The data source and the instances are
variables of the dashboard.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring.own_metrics import (
    OWN_METRICS,
    PREFIX,
    STAT,
    Chart,
    OwnMetric,
    with_bounds,
)

Json = dict[str, Any]
_DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_INSTANCES = 'instance=~"$instance"'
_COLUMNS = 24
_STAT_SIZE, _LINES_SIZE = (4, 4), (12, 8)
_SCHEMA_VERSION = 39
_YES_NO = "bool_yes_no"


def text(bounds: HealthSection) -> str:
    """The dashboard as JSON."""
    return json.dumps(dashboard(bounds), indent=2, sort_keys=True)


def dashboard(bounds: HealthSection) -> Json:
    """Numbers first, then lines over time."""
    return {
        "id": None,
        "uid": None,
        "title": "quotaflow",
        "description": "The health of quotaflow itself. Made by quotaflow metrics --grafana",
        "tags": ["quotaflow", "kafka"],
        "schemaVersion": _SCHEMA_VERSION,
        "version": 0,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "timezone": "utc",
        "time": {"from": "now-6h", "to": "now"},
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": _variables()},
        "panels": list(_panels(bounds)),
    }


def _variables() -> list[Json]:
    query = f"label_values({PREFIX}up, instance)"
    shown = {"hide": 0, "skipUrlSync": False}
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
        | {"refresh": 1, "includeAll": False, "multi": False, "current": {}, "options": []}
        | shown,
        {"name": "instance", "label": "Instance", "type": "query", "datasource": _DATA_SOURCE}
        | {"query": {"query": query, "refId": "instance"}, "definition": query, "refresh": 2}
        | {"includeAll": True, "allValue": ".*", "multi": True, "sort": 1, "options": []}
        | {"current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
        | shown,
    ]


def _panels(bounds: HealthSection) -> Iterator[Json]:
    """Panels from left to right and from the top down, without gaps."""
    charts = [(metric, chart) for metric in OWN_METRICS.values() if (chart := metric.chart)]
    stats = [each for each in charts if each[1].kind == STAT]
    lines = [each for each in charts if each[1].kind != STAT]
    y, number = 0, 0
    for chosen, (width, height) in ((stats, _STAT_SIZE), (lines, _LINES_SIZE)):
        x = 0
        for metric, chart in chosen:
            if x + width > _COLUMNS:
                x, y = 0, y + height
            number += 1
            place = {"x": x, "y": y, "w": width, "h": height}
            yield {"id": number, "gridPos": place} | _panel(metric, chart, bounds)
            x += width
        y += height


def _panel(metric: OwnMetric, chart: Chart, bounds: HealthSection) -> Json:
    expression = _of_instances(chart.expr or metric.full_name)
    is_stat = chart.kind == STAT
    target = {"refId": "A", "datasource": _DATA_SOURCE, "expr": expression}
    target |= {"legendFormat": chart.legend if metric.labels else "{{instance}}"}
    defaults: Json = {"unit": chart.unit, "thresholds": _thresholds(chart, bounds)}
    defaults["color"] = {"mode": "thresholds" if is_stat else "palette-classic"}
    if chart.unit != _YES_NO:
        defaults["min"] = 0
    if not is_stat:
        style = "dashed" if chart.bad else "off"
        defaults["custom"] = {"lineWidth": 1, "fillOpacity": 8, "showPoints": "auto"}
        defaults["custom"] |= {"thresholdsStyle": {"mode": style}}
    return {
        "type": chart.kind,
        "title": chart.title,
        "description": metric.meaning,
        "datasource": _DATA_SOURCE,
        "targets": [target],
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _stat_options() if is_stat else _line_options(),
    }


def _of_instances(expression: str) -> str:
    """The expression of the chosen instances alone; the metric of a chart has no other labels."""
    names = (metric.full_name for metric in OWN_METRICS.values())
    return _first_replaced(expression, sorted(names, key=len, reverse=True))


def _first_replaced(expression: str, names: Iterable[str]) -> str:
    name = next(name for name in names if name in expression)
    return expression.replace(name, f"{name}{{{_INSTANCES}}}")


def _thresholds(chart: Chart, bounds: HealthSection) -> Json:
    first, then = ("red", "green") if chart.low_is_bad else ("green", "red")
    steps: list[Json] = [{"color": first if chart.bad else "green", "value": None}]
    if chart.bad:
        steps.append({"color": then, "value": float(with_bounds(chart.bad, bounds))})
    return {"mode": "absolute", "steps": steps}


def _stat_options() -> Json:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    return {"reduceOptions": reduced, "colorMode": "background", "graphMode": "none"} | {
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
    }


def _line_options() -> Json:
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
