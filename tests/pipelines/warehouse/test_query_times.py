"""Which times a query reads of a table, by its text: never fewer than it does."""

from datetime import UTC, datetime, timedelta

import pytest

from quotaflow.pipelines.warehouse.query_check import checked
from quotaflow.pipelines.warehouse.query_times import Bounds

from ... import case_tables
from ...cases import cases

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
DAY = datetime(2026, 1, 2, tzinfo=UTC)
ONE = timedelta(microseconds=1)
NAMES = frozenset({"requests", "traffic", "traffic_by_hour"})


def bounds(sql: str) -> dict[str, Bounds]:
    return dict(checked(sql, NAMES).bounds)


@cases(
    ("condition", "expected"),
    *case_tables.rows(__file__, "a_condition_bounds_its_table", Bounds, NOON=NOON, DAY=DAY),
    ("until", "event_time <= '2026-01-02 12:00:00'", Bounds(None, NOON + ONE)),
    ("at", "event_time = '2026-01-02 12:00:00'", Bounds(NOON, NOON + ONE)),
    (
        "between",
        "event_time BETWEEN '2026-01-02' AND '2026-01-02 12:00:00'",
        Bounds(DAY, NOON + ONE),
    ),
    ("one date", "event_date = '2026-01-02'", Bounds(DAY, DAY + timedelta(days=1))),
)
def test_a_condition_bounds_its_table(condition: str, expected: Bounds) -> None:
    assert bounds(f"SELECT 1 FROM traffic WHERE {condition}") == {"traffic": expected}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM traffic",
        "SELECT 1 FROM traffic WHERE event_time >= '2026-01-02' OR principal = 'x'",
        "SELECT 1 FROM traffic WHERE event_time < '2026-01-02' OR event_time >= '2026-01-03'",
        "SELECT 1 FROM traffic WHERE NOT event_time >= '2026-01-02'",
        "SELECT 1 FROM traffic WHERE event_time >= (SELECT max(event_time) FROM traffic)",
        "SELECT 1 FROM traffic WHERE event_time >= produced_at",
        "SELECT 1 FROM traffic WHERE event_time >= now() - random() * INTERVAL 1 DAY",
        "SELECT 1 FROM traffic WHERE event_time >= NULL",
        "SELECT 1 FROM traffic WHERE event_time >= 'yesterday'",
        "SELECT 1 FROM traffic WHERE event_time <= 'infinity'",
        "SELECT 1 FROM traffic AS t (event_time, x) WHERE event_time >= '2026-01-02'",
        # Another naming of the same table has no bound.
        "SELECT 1 FROM traffic WHERE event_time >= '2026-01-02' UNION ALL SELECT 1 FROM traffic",
        "SELECT (SELECT max(event_time) FROM traffic) FROM traffic WHERE event_time > '2026-01-02'",
        # Of two tables it is not said which one has the column.
        "SELECT 1 FROM traffic, requests AS r WHERE event_time >= '2026-01-02'",
        "SELECT 1 FROM traffic, (SELECT 1 AS x) WHERE event_time >= '2026-01-02'",
        "SELECT 1 FROM traffic POSITIONAL JOIN requests r WHERE traffic.event_time > '2026-01-02'",
        # It takes another row where the nearest one is not there.
        "SELECT 1 FROM traffic ASOF JOIN requests r ON traffic.event_time >= r.event_time "
        "WHERE r.event_time < '2026-01-02'",
        # Rows may come between the look at the text and the query.
        "SELECT 1 FROM traffic WHERE event_time <= now()",
        # requests has no date of its own: this one is that of the query around it.
        "SELECT (SELECT 1 FROM requests WHERE event_date > '2026-01-02') FROM traffic",
        "SELECT 1 FROM traffic_by_hour WHERE hour >= '2026-01-02'",
    ],
)
def test_no_bounds(sql: str) -> None:
    assert bounds(sql) == {}


def test_each_table_of_a_query_has_its_own() -> None:
    sql = """
    WITH late AS (SELECT * FROM traffic WHERE event_time >= '2026-01-03')
    SELECT 1 FROM late
    JOIN (SELECT * FROM traffic WHERE event_time > '2026-01-02') USING (topic)
    LEFT JOIN requests AS r ON r.principal = late.principal
    WHERE r.event_time < TIMESTAMP '2026-01-02 12:00:00'
    """
    assert bounds(sql) == {"traffic": Bounds(DAY), "requests": Bounds(None, NOON)}
