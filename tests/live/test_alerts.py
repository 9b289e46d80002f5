"""Alerts on what real clients pushed, against the rule walking over the same readings."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.udfs.rules.alert import walk

from .tables_read import query

READINGS = (
    "SELECT series_id, unix_millis(event_time) AS time_ms, min(value) AS value FROM client_metrics "
    "WHERE metric LIKE 'org.apache.kafka.%.connection.count' AND NOT isnan(value) "
    "GROUP BY 1, 2 ORDER BY 1, 2"
)
EVENTS = (
    "SELECT series_id, unix_millis(event_time) AS time_ms, state, reason, "
    "unix_millis(first_breach) AS first_ms, peak_value, points FROM metric_alert_events"
)


def test_events_are_what_the_rule_says_of_the_readings(filled: Path, conf: Conf) -> None:
    rule = conf.alerts.rules[0].rule()
    series = defaultdict(list)
    for row in query(filled, READINGS):
        series[row["series_id"]].append((row["time_ms"], row["value"]))
    expected = {
        (of, e.time_ms, e.state, e.reason, e.breach.first_ms, e.breach.peak, e.breach.points)
        for of, points in series.items()
        for e in walk(rule, points)
    }
    found: list[tuple[Any, ...]] = [tuple(row.values()) for row in query(filled, EVENTS)]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_every_alert_names_its_client(filled: Path) -> None:
    alerts = query(filled, "SELECT * FROM metric_alerts")
    assert {"User:alice", "User:carol"} <= {row["principal"] for row in alerts}
    assert {row["client_software_name"] for row in alerts} >= {"apache-kafka-java", "librdkafka"}
    nameless = [row for row in alerts if not (row["client_id"] and row["client_address"])]
    assert nameless == []
