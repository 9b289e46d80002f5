"""Alerts on rows of tables, views and answers: when they open and close, over real tables."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from quotaflow.pipelines.config import AlertsSection, Conf
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.errors import ConfigError, JobError
from quotaflow.pipelines.results import row_alerts
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse import row_writer, unseen_rows
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...rows import HOSTILE, LONG_AGO, Row, alert, at
from ...schemas.views.view_tables import make_table, no_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = at(3_600)
LAG = AlertRule(
    name="lag", view="group_lag", where="lag > 10", key=["group_id"], show=["lag"], for_s=60
)
AT_ONCE = LAG.model_copy(update={"name": "now", "for_s": 0, "severity": "critical"})


def of_group(group: str, lag: int, **others: Any) -> Row:
    given = {"cluster_id": "c1", "group_id": group, "topic": "t", "partition": 0, "lag": lag}
    return given | {"position_known_at": NOW} | others


class Watched:
    """The tables of a warehouse, and its rules: `see` fills group_lag before it."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.reports: list[str] = []

    def see(self, second: float, rows: list[Row], *rules: AlertRule) -> int:
        make_table(self.warehouse, TABLES["group_lag"], rows)
        return self.again(second, *rules)

    def again(self, second: float, *rules: AlertRule, cluster_id: str | None = None) -> int:
        alerts = AlertsSection(rules=list(rules))
        row_alerts.check(alerts)
        return row_alerts.watch(
            alerts,
            self.warehouse,
            no_session,
            cluster_id=cluster_id,
            now=NOW + timedelta(seconds=second),
            report=self.reports.append,
        )

    @property
    def events(self) -> list[tuple[Any, ...]]:
        rows = FolderReader(self.warehouse).rows(
            "SELECT *, CAST(attributes AS VARCHAR) AS key FROM metric_alert_events "
            "ORDER BY event_time, rule, key"
        )
        return [
            (
                (row["event_time"] - NOW).total_seconds(),
                row["rule"],
                dict(row["attributes"]).get("group_id"),
                row["state"],
                row["reason"],
            )
            for row in rows
        ]

    def alerts(self, *columns: str) -> list[tuple[Any, ...]]:
        sql = f"SELECT {', '.join(columns)} FROM alerts"
        return sorted(
            (tuple(row.values()) for row in FolderReader(self.warehouse).rows(sql)), key=str
        )


@pytest.fixture
def watched(warehouse: Warehouse) -> Watched:
    return Watched(warehouse)


def test_an_alert_opens_after_its_time_and_closes_when_the_row_is_gone(watched: Watched) -> None:
    lags = [of_group("a", 50), of_group("a", 70, partition=1), of_group("b", 1)]
    assert watched.see(0, lags, LAG) == 1
    assert watched.alerts("rule") == []
    assert watched.again(59, LAG) == 0
    assert watched.again(60, LAG) == 1
    assert watched.again(120, LAG) == 0
    assert watched.see(180, [of_group("a", 3)], LAG) == 1
    assert watched.again(240, LAG) == 0
    assert watched.events == [
        (0, "lag", "a", "pending", None),
        (60, "lag", "a", "opened", None),
        (180, "lag", "a", "closed", "cleared"),
    ]
    columns = ("rule", "watched", "is_open", "opened_at", "closed_at", "duration_ms", "severity")
    opened, closed = NOW + timedelta(seconds=60), NOW + timedelta(seconds=180)
    assert watched.alerts(*columns) == [
        ("lag", "group_lag", False, opened, closed, 180_000, "warning")
    ]
    assert watched.reports == []


def test_what_is_brief_is_no_alert_and_each_key_is_one(watched: Watched) -> None:
    both = [of_group("a", 50), of_group("b", 50)]
    assert watched.see(0, both, LAG, AT_ONCE) == 4
    assert watched.see(30, both[1:], LAG, AT_ONCE) == 2
    assert watched.see(60, both, LAG, AT_ONCE) == 3
    assert watched.alerts("rule", "is_open", "attributes", "shown", "severity") == [
        ("lag", True, [("group_id", "b")], [("lag", "50")], "warning"),
        ("now", False, [("group_id", "a")], [], "critical"),
        ("now", True, [("group_id", "a")], [("lag", "50")], "critical"),
        ("now", True, [("group_id", "b")], [("lag", "50")], "critical"),
    ]
    assert ("lag", "a", "closed", "brief") in [event[1:] for event in watched.events]


def test_a_rule_that_conf_has_no_longer_closes_its_alerts(watched: Watched) -> None:
    watched.see(0, [of_group("a", 50)], AT_ONCE)
    assert watched.again(60) == 1
    assert watched.again(120) == 0
    assert watched.events[-1] == (60, "now", "a", "closed", "retired")


def test_another_key_is_another_alert(watched: Watched) -> None:
    watched.see(0, [of_group("a", 50)], AT_ONCE)
    wider = AT_ONCE.model_copy(update={"key": ["group_id", "topic"]})
    assert watched.again(60, wider) == 2
    assert [event[3] for event in watched.events] == ["opened", "opened", "closed"]


def test_a_conf_of_one_cluster_leaves_alerts_of_others(watched: Watched) -> None:
    rows = [of_group("a", 50), of_group("a", 50, cluster_id="c2")]
    assert watched.see(0, rows, AT_ONCE) == 2
    assert watched.again(60, cluster_id="c2") == 1
    assert watched.alerts("cluster_id", "is_open") == [("c1", True), ("c2", False)]


def test_rows_that_cannot_be_read_change_nothing(watched: Watched) -> None:
    assert watched.again(0, AT_ONCE) == 0
    watched.see(10, [of_group("a", 50)], AT_ONCE)
    broken = AT_ONCE.model_copy(update={"where": "lag > CAST(group_id AS INT)"})
    assert watched.again(60, broken) == 0
    assert "alert rule now is not evaluated: Conversion Error" in watched.reports[0]
    assert watched.alerts("is_open") == [(True,)]


@cases(
    "error",
    ("of conf", ConfigError("x")),
    ("of a job", JobError("x")),
    ("of Spark, on a commit", AnalysisException("x")),
)
def test_what_cannot_be_written_ends_no_run(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(unseen_rows, "append", refuse)
        assert watched.see(0, [of_group("a", 50)], AT_ONCE) == 0
    (report,) = watched.reports
    assert report.startswith("alerts on rows may not be up to date: ")
    assert watched.again(60, AT_ONCE) == 1


def test_a_table_of_an_older_release_is_brought_up_to_date_before_it_is_read(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.see(0, [of_group("a", 50)], AT_ONCE)
    steps, read = list[str](), row_alerts._last_events
    monkeypatch.setattr(Warehouse, "ensure", lambda *_: steps.append("ensure"))

    def reading(*given: Any) -> Any:
        steps.append("read")
        return read(*given)

    monkeypatch.setattr(row_alerts, "_last_events", reading)
    watched.see(60, [], AT_ONCE)
    assert steps == ["ensure", "read"]


def test_more_alerts_than_allowed_are_said_and_none_closes(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_alerts, "MAX_ROWS", 2)
    assert watched.see(0, [of_group("z", 50)], AT_ONCE) == 1
    assert watched.see(60, [of_group(name, 50) for name in "abcz"], AT_ONCE) == 2
    assert watched.reports == ["alert rule now has more than 2 alerts: narrow it"]
    assert {event[2:4] for event in watched.events} == {
        ("z", "opened"),
        ("a", "opened"),
        ("b", "opened"),
    }


def test_a_rebuild_of_readings_leaves_alerts_on_rows(watched: Watched) -> None:
    """Both are rows of one table, and a result replaces its own alone."""
    make_table(watched.warehouse, TABLES["metric_alert_events"], [alert(0, "opened", series_id=1)])
    watched.see(0, [of_group(HOSTILE, 50)], AT_ONCE)
    result = result_of("metric_alert_events", Conf())
    old = Replaced(result.stored([TimeRange(LONG_AGO, NOW + timedelta(days=1))]), result.scope)
    events = row_alerts.EVENTS
    row_writer.replace(no_session, watched.warehouse, events, events.arrow.empty_table(), old)
    assert [event[1] for event in watched.events] == ["now"]


def test_incidents_and_diagnoses_can_be_watched(watched: Watched) -> None:
    rules = [
        AlertRule(
            name="quota",
            view="incidents",
            where="state = 'open' AND cause = 'quota' AND list_contains(names, 'orders')",
            key=["symptom", "cause", "origin"],
            show=["subjects", "names"],
            for_s=0,
        ),
        AlertRule(name="any", view="diagnoses", where="is_ongoing", for_s=0),
    ]
    suffers = {"cluster_id": "c1", "principal": "User:o", "client_id": "orders", "api": "PRODUCE"}
    suffers |= {"rank": 1, "since": at(0), "until": NOW, "known_until": NOW, "symptom": "slow"}
    suffers |= {"cause": "quota", "detail": "producer_byte_rate", "facts": []}
    others = ("why_groups_lag", "reassignments", "cluster_symptoms", "needless_costs")
    for table in ("client_diagnoses", *others):
        rows = [suffers] if table == "client_diagnoses" else []
        make_table(watched.warehouse, TABLES[table], rows)
    assert watched.again(0, *rules) == 2
    assert watched.reports == []
    origin = [("cause", "quota"), ("origin", "producer_byte_rate of the default")]
    assert watched.alerts("rule", "attributes", "shown") == [
        ("any", [], []),
        ("quota", [*origin, ("symptom", "slow")], [("subjects", "1"), ("names", "[orders]")]),
    ]


@cases(
    ("rule", "message"),
    ("no table", {"view": "group_lags"}, r"lag: no table group_lags \(did you mean group_lag\?\)"),
    ("no column", {"key": ["group"]}, r"group_lag has no column group \(did you mean group_id"),
    ("no column to show", {"show": ["lags"]}, "group_lag has no column lags"),
    ("no column in it", {"where": "lags > 3"}, "group_lag has no column lags"),
    ("a subquery", {"where": "lag IN (SELECT 1)"}, "has columns of group_lag, and no query"),
    ("more clauses", {"where": "true) ORDER BY (lag"}, "and no query"),
    ("a bracket that ends its own", {"where": "true) OR (lag > 3"}, "syntax error"),
    ("a union", {"where": "true) UNION SELECT 1 WHERE (true"}, "and no query"),
    ("a setting", {"where": "lag > getvariable('x')"}, "the function getvariable is not allowed"),
    ("no SQL", {"where": "lag >"}, "syntax error"),
    ("two statements", {"where": "true); DROP TABLE x; SELECT (1"}, "only one query"),
)
def test_a_rule_that_can_never_be_true_is_refused(rule: dict[str, Any], message: str) -> None:
    given = {"name": "lag", "view": "group_lag", "where": "lag > 1"} | rule
    with pytest.raises(ConfigError, match=message):
        row_alerts.check(AlertsSection(rules=[AlertRule(**given)]))


def test_a_column_of_a_key_is_named_once() -> None:
    rule = {"name": "lag", "view": "group_lag", "where": "lag > 1", "key": ["group_id"] * 2}
    with pytest.raises(ValueError, match="group_id is named twice"):
        AlertRule.model_validate(rule)


@pytest.mark.spark
def test_two_jobs_over_a_catalog_open_an_alert_once(
    spark: "SparkSession", catalog: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.ensure(lambda: spark, [TABLES["group_lag"], row_alerts.EVENTS])
    rows = pa.Table.from_pylist([of_group("g", 11)], schema=TABLES["group_lag"].arrow)
    row_writer.append(lambda: spark, catalog, TABLES["group_lag"], rows)

    def watch(second: float, *rules: AlertRule) -> int:
        return row_alerts.watch(
            AlertsSection(rules=list(rules)),
            catalog,
            lambda: spark,
            cluster_id=None,
            now=NOW + timedelta(seconds=second),
            report=pytest.fail,
        )

    def states() -> list[str]:
        events = catalog.read(spark, "metric_alert_events").orderBy("event_time")
        return [row.state for row in events.collect()]

    def second_job(second: float, *rules: AlertRule) -> None:
        monkeypatch.undo()
        watch(second, *rules)

    # The other job reads, and writes, between what this one reads and writes.
    monkeypatch.setattr(Warehouse, "ensure", lambda *_: second_job(1, AT_ONCE))
    watch(0, AT_ONCE)
    assert states() == ["opened"]
    monkeypatch.setattr(Warehouse, "ensure", lambda *_: second_job(9))
    watch(10)
    assert states() == ["opened", "closed"]
    watch(20, AT_ONCE)
    assert states() == ["opened", "closed", "opened"]
