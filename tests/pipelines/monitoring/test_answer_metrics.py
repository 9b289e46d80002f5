"""Answers as metrics: each past its bound, bounded in number and length, and never by default."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_args

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from quotaflow.pipelines import config
from quotaflow.pipelines.areas.costs import COST_ITEMS
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.monitoring import Export, Exported, MonitoringSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import answer_metrics, prometheus
from quotaflow.pipelines.monitoring.answer_metrics import ANSWERS
from quotaflow.pipelines.warehouse import query_check, views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...rows import HOSTILE, Row, at
from ...schemas.views.filled_views import FILLED
from ...schemas.views.view_tables import make_table, make_tables_and_answers

NOW = at(3_600)
OF_EXPORTS = {"series_dropped", "answer_export_failing"}
EVERY = [Export(answer=name) for name in ANSWERS]


def conf_of(warehouse: Warehouse, *exports: Export) -> Conf:
    return Conf(warehouse=warehouse.conf, monitoring=MonitoringSection(export=list(exports)))


def exported(
    warehouse: Warehouse, *exports: Export
) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by the metric's name without its prefix."""
    families = prometheus.families_of_answers(conf_of(warehouse, *exports), NOW)
    return {
        family.name.removeprefix("quotaflow_"): [(s.labels, s.value) for s in family.samples]
        for family in families
    }


def of_group(group: str, lag: int, **others: Any) -> Row:
    given = {"cluster_id": "c1", "group_id": group, "topic": "t", "partition": 0, "lag": lag}
    return given | {"position_known_at": NOW, "lag_s": lag / 10} | others


def fill(warehouse: Warehouse, *rows: Row) -> None:
    make_table(warehouse, TABLES["group_lag"], list(rows))


def groups(samples: list[tuple[dict[str, str], float]]) -> dict[str, float]:
    return {labels["group_id"]: value for labels, value in samples}


def test_a_group_is_a_metric_while_it_lags(warehouse: Warehouse) -> None:
    fill(warehouse, of_group("a", 30), of_group("a", 12, partition=1), of_group("b", 0))
    metrics = exported(warehouse, Export(answer="group_lag"))
    labels = {"cluster_id": "c1", "group_id": "a", "topic": "t"}
    assert metrics == {
        "group_lag_records": [(labels, 42.0)],
        "group_lag_seconds": [(labels, 3.0)],
        "series_dropped": [({"answer": "group_lag"}, 0.0)],
        "answer_export_failing": [({"answer": "group_lag"}, 0.0)],
    }


@cases(
    ("given", "names", "dropped"),
    ("all", {}, "abcd", 0),
    ("the two that lag most", {"top": 2}, "dc", 2),
    ("past a bound", {"above": 20}, "cd", 0),
    ("named ones", {"names": ["a", "D", "c*"]}, "ac", 0),
    ("named ones of which one is dropped", {"names": ["a", "c"], "top": 1}, "c", 1),
    ("a name that LIKE would read", {"names": ["_"]}, "", 0),
)
def test_which_groups_are_metrics(
    warehouse: Warehouse, given: Any, names: str, dropped: int
) -> None:
    fill(warehouse, *(of_group(name, 10 * n) for n, name in enumerate("abcd", 1)))
    metrics = exported(warehouse, Export(answer="group_lag", **given))
    assert set(groups(metrics["group_lag_records"])) == set(names)
    assert metrics["series_dropped"] == [({"answer": "group_lag"}, dropped)]


def test_hostile_names_stay_one_label_and_one_series(warehouse: Warehouse) -> None:
    long = "x" * 200
    names = [f'"}} 1\n# {HOSTILE}\x1b[2J', "a\\", long, f"{long}y", ""]
    fill(warehouse, *(of_group(name, n) for n, name in enumerate(names, 1)))
    registry, _ = prometheus.registry(conf_of(warehouse, Export(answer="group_lag")))
    text = generate_latest(registry).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = families["quotaflow_group_lag_records"].samples
    shown = [sample.labels["group_id"] for sample in samples]
    assert len(shown) == len(set(shown)) == 4
    assert all(name.isprintable() and len(name) <= 103 for name in shown)
    (dropped,) = families["quotaflow_series_dropped"].samples
    assert dropped.value == 1


def test_each_answer_of_filled_tables_has_its_metrics_and_labels(warehouse: Warehouse) -> None:
    make_tables_and_answers(warehouse, FILLED)
    metrics = exported(warehouse, *(Export(answer=name, above=-1.0) for name in ANSWERS))
    declared = {metric.name: metric for metric in answer_metrics.metrics()}
    assert metrics.keys() == {*declared, *OF_EXPORTS}
    for name, metric in declared.items():
        assert all(labels.keys() == set(metric.labels) for labels, _ in metrics[name])
    assert {name for name in declared if metrics[name]} >= {"group_lag_records", "quota_used_ratio"}


def test_tables_that_were_never_made_have_no_series(warehouse: Warehouse) -> None:
    make_table(warehouse, TABLES["settings"], [])
    metrics = exported(warehouse, *EVERY)
    assert all(not samples for name, samples in metrics.items() if name not in OF_EXPORTS)
    assert {value for name in OF_EXPORTS for _, value in metrics[name]} == {0.0}


def test_an_answer_that_cannot_be_read_keeps_no_other_back(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(warehouse, of_group("a", 30))
    broken = replace(ANSWERS["incidents"], sql="SELECT CAST('x' AS INT) AS incident_subjects")
    monkeypatch.setattr(answer_metrics, "ANSWERS", {**ANSWERS, "incidents": broken})
    metrics = exported(warehouse, Export(answer="incidents"), Export(answer="group_lag"))
    assert groups(metrics["group_lag_records"]) == {"a": 30.0}
    failing = [({"answer": "incidents"}, 1.0), ({"answer": "group_lag"}, 0.0)]
    assert metrics["answer_export_failing"] == failing
    assert metrics["series_dropped"] == [({"answer": "group_lag"}, 0.0)]


def test_nothing_is_exported_by_default(warehouse: Warehouse) -> None:
    fill(warehouse, of_group("a", 30))
    assert exported(warehouse) == {}


def test_answers_are_read_once_a_minute(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[datetime] = []

    def read(_: Conf, now: datetime) -> list[Any]:
        times.append(now)
        return []

    monkeypatch.setattr(prometheus, "families", lambda *_: [])
    monkeypatch.setattr(prometheus, "families_of_answers", read)
    monkeypatch.setattr(prometheus, "_FRESH_FOR", timedelta(0))
    collector = prometheus.MetricsCollector(conf_of(warehouse, *EVERY))
    for _ in range(3):
        collector.collect()
    assert len(times) == 1


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_has_columns_of_its_labels_and_metrics(name: str) -> None:
    answer = ANSWERS[name]
    columns = set(re.findall(r'AS "?(\w+)"?', answer.sql)) | set(re.findall(r"\w+", answer.sql))
    assert {*answer.labels, *(metric.name for metric in answer.metrics)} <= columns
    assert answer.named_by in answer.labels
    reads = query_check.checked(
        answer.sql.format(now="now()", cost_items=COST_ITEMS),
        frozenset([*TABLES, *views.load()]),
    )
    assert reads.names == set(answer.reads)


def test_conf_names_each_answer() -> None:
    assert set(ANSWERS) == set(get_args(Exported))


@cases(
    ("text", "message"),
    ("no answer", "[{answer: group_lags}]", r"did you mean group_lag\?"),
    ("twice", "[{answer: cost}, {answer: cost}]", "cost is exported twice"),
    ("too many", "[{answer: cost, top: 1001}]", "less than or equal to 1000"),
)
def test_a_wrong_export_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.load(overrides=[f"monitoring.export={text}"])
