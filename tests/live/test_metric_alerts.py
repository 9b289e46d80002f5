"""Alerts on what real clients pushed, against the rule walking over the same readings."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quotaflow.pipelines.config import Conf

from ..udfs.alert_events import walk
from .tables_read import query

READINGS = (
    "SELECT series_id, event_time, value FROM client_metrics "
    "WHERE metric LIKE 'org.apache.kafka.%.request.latency.max' AND NOT isnan(value) "
    "ORDER BY series_id, event_time, value"
)
EVENTS = (
    "SELECT series_id, event_time, state, reason, first_breach, peak_value, points "
    "FROM metric_alert_events"
)


def ms(time: datetime) -> int:
    """Whole ms: what a series says twice in one of them counts once, the least of it."""
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def test_events_are_what_the_rule_says_of_the_readings(filled: Path, conf: Conf) -> None:
    rule = conf.alerts.rules[0].rule()
    series = defaultdict[int, dict[int, float]](dict)
    for row in query(filled, READINGS):
        series[row["series_id"]].setdefault(ms(row["event_time"]), row["value"])
    expected = {
        (
            series_key,
            e.time_ms,
            e.state,
            e.reason,
            e.breach.first_ms,
            e.breach.peak,
            e.breach.points,
        )
        for series_key, points in series.items()
        for e in walk(rule, points.items())
    }
    stored = [
        tuple(ms(value) if isinstance(value, datetime) else value for value in row.values())
        for row in query(filled, EVENTS)
    ]
    assert len(stored) == len(set(stored))
    assert set(stored) == expected


def test_every_alert_names_its_client(filled: Path) -> None:
    alerts = query(filled, "SELECT * FROM metric_alerts")
    assert {"User:alice", "User:carol"} <= {row["principal"] for row in alerts}
    software = {row["client_software_name"] for row in alerts}
    assert software == {"apache-kafka-java", "confluent-kafka-python"}
    nameless = [row for row in alerts if not (row["client_id"] and row["client_address"])]
    assert nameless == []
