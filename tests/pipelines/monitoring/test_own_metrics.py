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
from prometheus_client.parser import text_string_to_metric_families

from quotaflow.pipelines.config import Conf, HealthSection
from quotaflow.pipelines.monitoring import grafana, own_metrics, prometheus, rule_file, runbook
from quotaflow.pipelines.monitoring.own_metrics import OWN_METRICS
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...command_line import Command

ROOT = Path(__file__).parents[3]
BOUNDS = HealthSection()
STRICT = HealthSection(max_silence_s=60, max_behind_s=61, min_free_share=0.5)
NAMES = {metric.full_name: metric for metric in OWN_METRICS.values()}
RULES: list[dict[str, Any]] = yaml.safe_load(rule_file.text(BOUNDS))["groups"][0]["rules"]
PANELS: list[dict[str, Any]] = grafana.dashboard(BOUNDS)["panels"]


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
    alerts = {alert.name for alert in own_metrics.alerts()}
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
    names = [alert.name for alert in own_metrics.alerts()]
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
    rules = yaml.safe_load(rule_file.text(BOUNDS, url))["groups"][0]["rules"]
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


def test_the_dashboard_can_be_imported_beside_any_other() -> None:
    board = grafana.dashboard(BOUNDS)
    assert (board["uid"], board["id"]) == (None, None)
    source, instance = board["templating"]["list"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    variable = {"type": "prometheus", "uid": "${" + source["name"] + "}"}
    assert all(each == variable for each in data_sources(board))
    assert instance["definition"] == "label_values(quotaflow_up, instance)"


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_has_a_unit_thresholds_and_one_query(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    steps = defaults["thresholds"]["steps"]
    assert steps[0]["value"] is None
    assert [step["value"] for step in steps[1:]] == sorted(step["value"] for step in steps[1:])
    (target,) = panel["targets"]
    (name,) = set(re.findall(r"quotaflow_\w+(?=\{)", target["expr"]))
    assert f'{name}{{instance=~"$instance"}}' in target["expr"]
    assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= {
        *NAMES[name].labels,
        "instance",
    }


def test_every_metric_has_a_panel_and_none_lies_over_another() -> None:
    def cells(at: dict[str, int]) -> set[tuple[int, int]]:
        return {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}

    shown = {re.findall(r"quotaflow_\w+", p["targets"][0]["expr"])[0] for p in PANELS}
    assert shown == NAMES.keys()
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for one, other in combinations(PANELS, 2):
        assert not cells(one["gridPos"]) & cells(other["gridPos"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


def test_thresholds_are_those_of_conf() -> None:
    (panel,) = (p for p in grafana.dashboard(STRICT)["panels"] if p["title"] == "Free disk")
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps == [{"color": "red", "value": None}, {"color": "green", "value": 0.5}]


def test_the_command_prints_both(command: Command) -> None:
    printed = command("metrics", "--rules", "--set", "health.max_silence_s=61")
    assert printed.out == rule_file.text(HealthSection(max_silence_s=61))
    assert json.loads(command("metrics", "--grafana").out) == grafana.dashboard(BOUNDS)


@pytest.mark.parametrize("others", [["--grafana"], ["throttle"], ["--json"], ["--kip", "KIP-73"]])
def test_a_file_is_printed_alone(command: Command, others: list[str]) -> None:
    printed = command("metrics", "--rules", *others, code=2)
    assert "--rules and --grafana print a file each" in printed.err
