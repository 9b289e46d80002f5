"""Rows of a time: those of a period that touches it, as `quotaflow show --since` lists them."""

from quotaflow.pipelines.warehouse import browsing, row_times, views
from quotaflow.schemas.tables.catalog import TABLES

from ...cases import cases
from ...delta_tables import NOON
from ...rows import Row, at, row
from ...schemas.views.memory_tables import MemoryTables
from ...schemas.views.view_tables import make_tables


def shown(name: str, table: str, rows: list[Row], second: float) -> int:
    """How many rows of `name` are of the time since so many seconds after noon."""
    tables = MemoryTables()
    make_tables(tables, {table: rows})
    described = TABLES.get(name) or views.load()[name]
    columns = [column.name for column in described.columns]
    return len(tables.rows(browsing.select(name, columns, at(second), None, None)))


@cases(
    ("name", "table", "values", "end_s"),
    ("an hour of a view", "latency_by_hour", "request_times", {"api": "PRODUCE"}, 3_600),
    ("a minute of a result", "request_times", "request_times", {"api": "PRODUCE"}, 60),
    ("a day of an answer", "top_talkers", "top_talkers", {}, 43_200),
    ("a window", "quota_usage", "quota_usage", {"period_s": 1}, 1),
    ("windows of an hour", "quota_usage", "quota_usage", {"period_s": 3_600}, 3_600),
    ("its last minute", "replica_advice", "replica_advice", {}, 60),
    ("a time that ended", "rebalances", "rebalances", {"ended_at": at(90)}, 90.000001),
    ("a symptom", "diagnoses", "cluster_symptoms", {"until": at(600)}, 600.000001),
    ("a moment", "plans", "plans", {}, 0.000001),
)
def test_a_row_is_of_each_time_that_its_period_touches(
    name: str, table: str, values: Row, end_s: float
) -> None:
    start = NOON.replace(hour=0) if table == "top_talkers" else NOON
    rows = [row(table, start, {}, **values)]
    assert shown(name, table, rows, -1) == 1
    assert shown(name, table, rows, end_s - 0.000001) == 1
    assert shown(name, table, rows, end_s) == 0


def test_what_has_not_ended_is_of_each_time() -> None:
    """A config that still has its value; the value before it ended at noon."""
    values = [
        row("configs", second, {}, config_key="a", config_value=str(second)) for second in (-9, 0)
    ]
    assert shown("config_history", "configs", values, 86_400) == 1
    assert shown("config_history", "configs", values, 0) == 2


def test_a_row_without_a_time_is_of_no_time() -> None:
    rows = [row("client_metrics", 0, {}, event_time=None)]
    assert shown("client_metrics", "client_metrics", rows, -86_400) == 0


def test_the_first_time_that_a_clock_has_is_a_time() -> None:
    rows = [row("request_times", 0, {}, api="PRODUCE")]
    first = NOON.replace(year=1, month=1, day=1)
    assert shown("request_times", "request_times", rows, (first - NOON).total_seconds()) == 1


MOMENTS = {"batches", "query_progress", "quality_results", "current_quality"}
"""What a batch or a run says has the time of its start."""
WINDOWS = {"client_usage_windows", "user_usage_windows"}
"""Steps of other views, in which a window is a second and a rolled-up one has no length."""


def test_each_start_of_a_period_has_its_end() -> None:
    """A head that says 'start of the minute' in other words would make its rows moments."""
    lengthless = set()
    for name, each in (TABLES | dict(views.load())).items():
        meanings = {column.name: column.comment for column in each.columns}
        period = row_times.period(name, meanings)
        starts = period.time and meanings[period.time].startswith("start of")
        if starts and not (period.end or period.unit):
            lengthless.add(name)
    assert lengthless == MOMENTS | WINDOWS
