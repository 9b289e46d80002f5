"""Alerts on metrics of clients: which are open, and that none ends before its time."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.warehouse import views

from ...cases import cases
from ...rows import FAR_AHEAD, LONG_AGO, Row, alert
from .view_tables import picked, view


def at(second: float) -> datetime:
    return LONG_AGO + timedelta(seconds=second)


@cases(
    ("events", "expected"),
    ("opened", [alert(200, "opened")], (True, at(200), None, None, 200_000, 7_000.0)),
    (
        "still open",
        [alert(200, "opened"), alert(3_600, "still_open", peak_value=9_000.0)],
        (True, at(200), None, None, 3_600_000, 9_000.0),
    ),
    (
        "cleared",
        [alert(200, "opened"), alert(300, "closed", reason="cleared")],
        (False, at(200), at(300), "cleared", 300_000, 7_000.0),
    ),
    (
        "stale, told ahead of its time",
        [alert(200, "opened"), alert(0, "closed", reason="stale", event_time=FAR_AHEAD)],
        (True, at(200), None, None, 200_000, 7_000.0),
    ),
    (
        "stale: it lasted as long as there were readings",
        [alert(200, "opened"), alert(900, "closed", reason="stale", last_reading=at(300))],
        (False, at(200), at(900), "stale", 300_000, 7_000.0),
    ),
    (
        "stale, by an earlier version",
        [alert(200, "opened"), alert(900, "closed", reason="stale")],
        (False, at(200), at(900), "stale", 900_000, 7_000.0),
    ),
)
def test_one_alert(events: list[Row], expected: tuple[Any, ...]) -> None:
    names = ("is_open", "opened_at", "closed_at", "reason", "duration_ms", "peak_value")
    assert picked(view("metric_alerts", {"metric_alert_events": events}), *names) == [expected]


DOCS = Path(__file__).parents[3] / "docs"
QUERY = re.compile(r"(?ms)^```sql\n(.*?)^```$")


def test_no_query_takes_an_end_before_its_time() -> None:
    """A stale end is written ahead of its time, and a reading may still come."""
    texts = {view.name: view.sql for view in views.load().values()}
    texts |= {answer.name: answer.sql for answer in ANSWERS}
    for page in DOCS.glob("*.md"):
        for nth, query in enumerate(QUERY.findall(page.read_text(encoding="utf-8"))):
            texts[f"{page.name} {nth}"] = query
    readers = {name: sql for name, sql in texts.items() if "FROM metric_alert_events" in sql}
    assert len(readers) > 1
    for name, sql in readers.items():
        assert re.search(r"event_time <= (current_timestamp|now)\(\)", sql), name
