"""The charts of own_metrics.yaml and answer_metrics.yaml as dashboards of Grafana, to be imported.

They have neither an id nor a uid: Grafana gives both at import. The data source, the instances and
the clusters are variables of a dashboard, so that it can be shared.
"""

import json
from collections.abc import Iterator
from typing import Any

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring import answer_metrics
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
OWN = "quotaflow"
BOARDS = (OWN, *answer_metrics.BOARDS)
"""The dashboards: of quotaflow itself, and of answers."""
_INSTANCES, _CLUSTERS = 'instance=~"$instance"', 'cluster_id=~"$cluster"'
_GRAFANA_VERSION = "10.0.0"
_COLUMNS = 24
_STAT_SIZE, _LINES_SIZE = (4, 4), (12, 8)
_SCHEMA_VERSION = 39
_YES_NO = "bool_yes_no"


def text(bounds: HealthSection, board: str = OWN) -> str:
    """A dashboard as JSON."""
    return json.dumps(dashboard(bounds, board), indent=2, sort_keys=True)


def dashboard(bounds: HealthSection, board: str = OWN) -> Json:
    """Numbers first, then lines over time."""
    panels = list(_panels(bounds, board))
    about = "The health of quotaflow itself" if board == OWN else f"Answers about {board}"
    made_by = "quotaflow metrics --grafana" + ("" if board == OWN else f" --board {board}")
    return {
        "__inputs": [],
        "__requires": _requirements({panel["type"] for panel in panels}),
        "id": None,
        "uid": None,
        "title": "quotaflow" if board == OWN else f"quotaflow: {board}",
        "description": f"{about}. Made by {made_by}",
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
        "templating": {"list": _variables(board)},
        "panels": panels,
    }


def _requirements(kinds: set[str]) -> list[Json]:
    """What Grafana needs to show a dashboard that is shared."""
    return [
        {"type": "grafana", "id": "grafana", "name": "Grafana", "version": _GRAFANA_VERSION},
        {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
        *({"type": "panel", "id": each, "name": each, "version": ""} for each in sorted(kinds)),
    ]


def _variables(board: str) -> list[Json]:
    shown = {"hide": 0, "skipUrlSync": False}
    source: Json = {"name": "datasource", "label": "Data source", "type": "datasource"}
    source |= {"query": "prometheus", "refresh": 1, "includeAll": False, "multi": False}
    source |= {"current": {}, "options": []} | shown
    instances = _query_variable("instance", "Instance", f"label_values({PREFIX}up, instance)")
    if board == OWN:
        return [source, instances]
    (first, *_) = answer_metrics.metrics(board)
    clusters = f"label_values({first.full_name}, cluster_id)"
    return [source, instances, _query_variable("cluster", "Cluster", clusters)]


def _query_variable(name: str, label: str, query: str) -> Json:
    """A variable with the values of a label: all of them at first."""
    return (
        {"name": name, "label": label, "type": "query", "datasource": _DATA_SOURCE}
        | {"query": {"query": query, "refId": name}, "definition": query, "refresh": 2}
        | {"includeAll": True, "allValue": ".*", "multi": True, "sort": 1, "options": []}
        | {"current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
        | {"hide": 0, "skipUrlSync": False}
    )


def _panels(bounds: HealthSection, board: str) -> Iterator[Json]:
    """Panels from left to right and from the top down, without gaps."""
    metrics = OWN_METRICS.values() if board == OWN else answer_metrics.metrics(board)
    charts = [(metric, chart) for metric in metrics if (chart := metric.chart)]
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
    expression = _selected(metric, chart.expr or metric.full_name)
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


def _selected(metric: OwnMetric, expression: str) -> str:
    """The expression of the chosen instances and clusters alone: it names its own metric."""
    chosen = [_INSTANCES, *([_CLUSTERS] if "cluster_id" in metric.labels else [])]
    return expression.replace(metric.full_name, f"{metric.full_name}{{{','.join(chosen)}}}", 1)


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
