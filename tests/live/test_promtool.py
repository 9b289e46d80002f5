"""Rules and panels by promtool of Debian: they are valid, and alerts fire when they should."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from quotaflow.pipelines.config import HealthSection
from quotaflow.pipelines.monitoring import answer_metrics, grafana, own_metrics, rule_file

from . import fetched

pytestmark = pytest.mark.more

ALERTS = [*own_metrics.alerts(), *answer_metrics.alerts()]
LAG = 'quotaflow_group_lag_seconds{cluster_id="c",group_id="g",topic="t"}'
QUARANTINED = 'quotaflow_rows_total{quotaflow_job="j",table="t",outcome="quarantined",reason="r"}'
HEALTHY = [
    ("quotaflow_up", "1+0x400"),
    ("quotaflow_healthy", "1+0x400"),
    ('quotaflow_job_last_trigger_timestamp_seconds{quotaflow_job="fetches"}', "0+60x400"),
    ('quotaflow_job_last_trigger_timestamp_seconds{quotaflow_job="upkeep"}', "0+0x400"),
    ('quotaflow_disk_free_ratio{disk="tables"}', "0.3+0x400"),
    (QUARANTINED, "7+0x400"),
]
# Series that replace those of a healthy pipeline, and the alerts that fire 200 minutes later.
CASES = [
    ({}, set()),
    ({"quotaflow_up": "0+0x400"}, {"QuotaflowDown"}),
    ({"quotaflow_up": "_x400"}, {"QuotaflowDown"}),
    ({"quotaflow_healthy": "0+0x400"}, {"QuotaflowUnhealthy"}),
    ({HEALTHY[2][0]: "0+60x150 9000+0x250"}, {"QuotaflowJobSilent"}),
    ({HEALTHY[4][0]: "0.05+0x400"}, {"QuotaflowDiskFull"}),
    ({QUARANTINED: "7+0x190 8+0x200"}, {"QuotaflowRowsQuarantined"}),
    ({QUARANTINED: "_x190 3+0x200"}, {"QuotaflowRowsQuarantined"}),
    ({'quotaflow_checks_failing{severity="critical"}': "1+0x400"}, {"QuotaflowChecksFailing"}),
    ({'quotaflow_checks_failing{severity="warning"}': "1+0x400"}, set()),
    ({LAG: "400+0x400"}, {"QuotaflowGroupLags"}),
    ({LAG: "400+0x195 10+0x205"}, set()),
    ({'quotaflow_answer_export_failing{answer="cost"}': "0+0x400"}, set()),
    ({'quotaflow_answer_export_failing{answer="cost"}': "1+0x400"}, {"QuotaflowExportFailing"}),
]


@pytest.fixture(scope="module")
def promtool() -> Path:
    return fetched.from_debian("prometheus") / "usr/bin/promtool"


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rule_file_is_valid(promtool: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(rule_file.text(HealthSection()), encoding="utf-8")
    assert f"SUCCESS: {len(ALERTS)} rules found" in run(promtool, "check", "rules", file)


def test_every_panel_of_each_dashboard_is_a_valid_query(promtool: Path, tmp_path: Path) -> None:
    boards = [grafana.dashboard(HealthSection(), board) for board in grafana.BOARDS]
    panels = [panel for board in boards for panel in board["panels"]]
    texts = [re.sub(r"\$(instance|cluster)", ".*", p["targets"][0]["expr"]) for p in panels]
    rules = [{"record": f"panel:{n}", "expr": text} for n, text in enumerate(texts)]
    file = tmp_path / "panels.yaml"
    groups = [{"name": "panels", "rules": rules}]
    file.write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    assert f"SUCCESS: {len(panels)} rules found" in run(promtool, "check", "rules", file)


def case(number: int, changed: dict[str, str], firing: set[str]) -> dict[str, Any]:
    """One scenario in promtool's form: each alert fires or is silent."""
    series = [{"series": name, "values": v} for name, v in (dict(HEALTHY) | changed).items()]
    expected = [
        {"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})', "eval_time": "200m"}
        | {"exp_samples": [{"labels": "{}", "value": 1}] if name in firing else []}
        for name in (alert.name for alert in ALERTS)
    ]
    return {
        "name": f"case {number}",
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": expected,
    }


def test_alerts_fire_when_they_should_and_otherwise_not(promtool: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(rule_file.text(HealthSection()), encoding="utf-8")
    tests = [case(number, *each) for number, each in enumerate(CASES)]
    file = tmp_path / "tests.yaml"
    content = {"rule_files": [rules.name], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert "SUCCESS" in run(promtool, "test", "rules", file)
