"""The declared metrics: what is exposed, the rule file, the dashboard, and the pages of docs."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families

from quotaflow.pipelines.config import Conf, HealthSection
from quotaflow.pipelines.monitoring import (
    answer_metrics,
    grafana,
    own_metrics,
    prometheus,
    rule_file,
    runbook,
)
from quotaflow.pipelines.monitoring.own_metrics import OWN_METRICS
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...command_line import Command

ROOT = Path(__file__).parents[3]
BOUNDS = HealthSection()
STRICT = HealthSection(max_silence_s=60, max_behind_s=61, min_free_share=0.5)
NAMES = {
    metric.full_name: metric
    for metric in (*OWN_METRICS.values(), *answer_metrics.ABOUT_EXPORTS, *answer_metrics.metrics())
}
ALERTS = (*own_metrics.alerts(), *answer_metrics.alerts())
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(rule_file.text(BOUNDS))["groups"] for rule in group["rules"]
]
PANELS = {board: grafana.dashboard(BOUNDS, board)["panels"] for board in grafana.BOARDS}


def test_what_is_declared_is_exposed_with_its_labels(warehouse: Warehouse) -> None:
    file = warehouse.conf.folder / "quotaflow.prom"
    conf = Conf(warehouse=warehouse.conf)
    warehouse.conf.folder.mkdir(parents=True, exist_ok=True)
    with prometheus.exposed(conf, None, file):
        pass
    families = {
        family.name: family
        for family in text_string_to_metric_families(file.read_text(encoding="utf-8"))
    }
    assert families.keys() == {f"quotaflow_{name}" for name in OWN_METRICS}
    for name, metric in OWN_METRICS.items():
        family = families[f"quotaflow_{name}"]
        assert (family.type, family.documentation) == (metric.kind, metric.meaning)
        for sample in family.samples:
            assert set(sample.labels) == set(metric.labels)


def test_the_page_has_each_metric_and_each_alert() -> None:
    page = runbook.metrics_page()
    alerts = {alert.name for alert in ALERTS}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == NAMES.keys()
    assert set(re.findall(r"^\| \[(\w+)\]", page, re.M)) == alerts


def test_every_step_links_to_a_heading() -> None:
    for file, anchor in re.findall(r"\(\.\./(\w+\.md)(?:#([\w-]+))?\)", runbook.page()):
        text = (ROOT / "docs" / file).read_text(encoding="utf-8")
        headings = [heading.lower() for heading in re.findall(r"^##+ (.+)$", text, re.M)]
        assert not anchor or anchor in [
            re.sub(r"[^\w-]", "", h.replace(" ", "-")) for h in headings
        ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_has_all_that_prometheus_and_people_need(rule: dict[str, Any]) -> None:
    assert list(rule) == ["alert", "expr", "for", "labels", "annotations"]
    assert re.fullmatch(r"[1-9]\d*[mhd]", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert list(rule["annotations"]) == ["summary", "description", "runbook_url"]
    assert all(rule["annotations"].values())
    anchor = rule["annotations"]["runbook_url"].removeprefix(f"{runbook.PAGE}#")
    assert anchor in re.findall(r"^## (\w+)$", runbook.page().lower(), re.M)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_names_metrics_and_labels_that_exist(rule: dict[str, Any]) -> None:
    names = set(re.findall(r"quotaflow_\w+", re.sub(r"\{.*?\}", "", rule["expr"])))
    assert names
    assert names <= NAMES.keys()
    labels = {label for name in names for label in NAMES[name].labels}
    assert set(re.findall(r"(\w+)!?[=~]+\"", rule["expr"])) <= labels
    texts = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", texts)) <= labels


def test_names_of_alerts_are_unique() -> None:
    names = [alert.name for alert in ALERTS]
    assert len(names) == len(RULES)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("bounds", [BOUNDS, STRICT], ids=["defaults", "strict"])
def test_bounds_are_those_of_conf(bounds: HealthSection) -> None:
    text = rule_file.text(bounds)
    for name in ("max_silence_s", "max_behind_s", "min_free_share"):
        assert re.search(rf"[<>]\s+{getattr(bounds, name)}\b", text)
    assert not Template(text).get_identifiers() or set(Template(text).get_identifiers()) <= {
        *("labels", "value")
    }


def test_links_go_where_the_runbook_is_served() -> None:
    url = "https://wiki.example/runbook"
    groups = yaml.safe_load(rule_file.text(BOUNDS, url))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert all(rule["annotations"]["runbook_url"].startswith(f"{url}#") for rule in rules)


def data_sources(node: Any) -> Iterator[Any]:
    """Every data source that a dashboard names."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "datasource":
                yield value
            yield from data_sources(value)
    elif isinstance(node, list):
        for each in node:
            yield from data_sources(each)


@pytest.mark.parametrize("name", grafana.BOARDS)
def test_a_dashboard_can_be_imported_beside_any_other(name: str) -> None:
    board = grafana.dashboard(BOUNDS, name)
    assert (board["uid"], board["id"]) == (None, None)
    source, instance, *others = board["templating"]["list"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    variable = {"type": "prometheus", "uid": "${" + source["name"] + "}"}
    assert all(each == variable for each in data_sources(board))
    assert instance["definition"] == "label_values(quotaflow_up, instance)"
    assert [each["name"] for each in others] == ([] if name == grafana.OWN else ["cluster"])
    assert board["__inputs"] == []


@pytest.mark.parametrize("name", grafana.BOARDS)
def test_a_dashboard_is_of_grafanas_schema(name: str) -> None:
    """What the schema does not have is lost on the way through it; null and empty count alike."""
    board = grafana.dashboard(BOUNDS, name)
    for of_sharing in ("__inputs", "__requires", "id", "uid"):
        del board[of_sharing]
    for variable in board["templating"]["list"]:
        # Grafana itself writes it, for people who read the list of variables.
        variable.pop("definition", None)
    through = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(board)))
    assert lost(board, through) == []
    board["panels"][0]["fieldConfig"]["defaults"]["units"] = "s"
    assert lost(board, json.loads(JSONEncoder().encode(Dashboard.from_json(board)))) != []


def lost(given: Any, through: Any, place: str = "") -> list[str]:
    if isinstance(given, dict) and isinstance(through, dict):
        every = (lost(given[key], through.get(key), f"{place}.{key}") for key in given)
    elif isinstance(given, list) and isinstance(through, list) and len(given) == len(through):
        every = (
            lost(*pair, f"{place}.{n}") for n, pair in enumerate(zip(given, through, strict=True))
        )
    else:
        return [] if given == through else [place]
    return [name for names in every for name in names]


@pytest.mark.parametrize(
    "panel",
    [panel for panels in PANELS.values() for panel in panels],
    ids=lambda panel: panel["title"],
)
def test_a_panel_has_a_unit_thresholds_and_one_query(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    steps = defaults["thresholds"]["steps"]
    assert steps[0]["value"] is None
    assert [step["value"] for step in steps[1:]] == sorted(step["value"] for step in steps[1:])
    (target,) = panel["targets"]
    (name,) = set(re.findall(r"quotaflow_\w+(?=\{)", target["expr"]))
    clusters = ',cluster_id=~"$cluster"' if "cluster_id" in NAMES[name].labels else ""
    assert f'{name}{{instance=~"$instance"{clusters}}}' in target["expr"]
    assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= {
        *NAMES[name].labels,
        "instance",
    }


@pytest.mark.parametrize("name", grafana.BOARDS)
def test_every_metric_has_a_panel_and_none_lies_over_another(name: str) -> None:
    panels = PANELS[name]
    of_answers = {metric.full_name for metric in answer_metrics.metrics(name)}
    own = {metric.full_name for metric in OWN_METRICS.values()}

    def cells(at: dict[str, int]) -> set[tuple[int, int]]:
        return {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}

    shown = {re.findall(r"quotaflow_\w+", p["targets"][0]["expr"])[0] for p in panels}
    assert shown == (own if name == grafana.OWN else of_answers)
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations(panels, 2):
        assert not cells(one["gridPos"]) & cells(other["gridPos"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_thresholds_are_those_of_conf() -> None:
    (panel,) = (p for p in grafana.dashboard(STRICT)["panels"] if p["title"] == "Free disk")
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps == [{"color": "red", "value": None}, {"color": "green", "value": 0.5}]


def test_the_command_prints_both(command: Command) -> None:
    printed = command("metrics", "--rules", "--set", "health.max_silence_s=61")
    assert printed.out == rule_file.text(HealthSection(max_silence_s=61))
    assert json.loads(command("metrics", "--grafana").out) == grafana.dashboard(BOUNDS)
    for board in grafana.BOARDS:
        printed = command("metrics", "--grafana", "--board", board)
        assert json.loads(printed.out) == grafana.dashboard(BOUNDS, board)
    assert "--board x is unknown" in command("metrics", "--grafana", "--board", "x", code=2).err
    assert "give --grafana too" in command("metrics", "--board", "groups", code=2).err


@pytest.mark.parametrize("others", [["--grafana"], ["throttle"], ["--json"], ["--kip", "KIP-73"]])
def test_a_file_is_printed_alone(command: Command, others: list[str]) -> None:
    printed = command("metrics", "--rules", *others, code=2)
    assert "--rules and --grafana print a file each" in printed.err
