"""What the rule of `metric_alert_events` reads of conf: its alert rules (KIP-714)."""

import pyarrow as pa

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.config import AlertsSection
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.warehouse.sql_literals import like_pattern, literal
from quotaflow.schemas.table import DOUBLE, INT, STRING
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs import alerts
from quotaflow.udfs.engine.rule import Walk

_HOUR_S = 3_600
_RULES = pa.schema(
    [
        pa.field("rule", STRING),
        pa.field("pattern", STRING),
        pa.field("labels", pa.map_(pa.string(), pa.string())),
        pa.field("severity", STRING),
        pa.field("owner", STRING),
        pa.field("bound", DOUBLE),
        pa.field("subscribe_metrics", STRING),
        pa.field("subscribe_interval_ms", INT),
    ]
)
_CALCULATED = {*alerts.READINGS.names, *alerts.EVENT.names, "event_time"}


def memory_s(conf: AlertsSection) -> int:
    """How far back an event depends on readings.

    An open alert has a new row every hour. So a row depends on rows at most that far and one
    stale_s back, and a breach without a row yet on those of its for_s and stale_s.
    """
    reaches_s = [rule.stale_s + max(rule.for_s, _HOUR_S) for rule in conf.metric_rules]
    return max([2 * _HOUR_S, *reaches_s])


def events(conf: AlertsSection) -> Walk:
    """Events of alerts, as udfs/rules/alert.py defines them for the readings of a series."""
    of_reading = [
        field
        for field in TABLES["metric_alert_events"].arrow
        if field.name in CLIENT_METRICS.column_names and field.name not in _CALCULATED
    ]
    return Walk(
        name="alert_events",
        sql=texts.read("metric_alert_readings.sql"),
        schema=pa.schema(
            [*alerts.READINGS, *of_reading, *alerts.EVENT, alerts.LAST_READING, alerts.ALERT_ID]
        ),
        function=alerts.find_alerts({rule.name: rule.rule() for rule in conf.metric_rules}),
    )


def rules(conf: AlertsSection) -> pa.Table:
    """The rules, with the subscriptions that they ask for."""
    return pa.Table.from_pylist(list(map(_row, conf.metric_rules)), schema=_RULES)


def readings(conf: AlertsSection) -> str:
    """SQL that is true for readings that any rule names; NaN ('no samples') is no number."""
    named = " OR ".join(f"({_names(rule)})" for rule in conf.metric_rules) or "false"
    return f"NOT isnan(value) AND ({named})"


def _row(rule: AlertRule) -> dict[str, object]:
    return {
        "rule": rule.name,
        "pattern": like_pattern(rule.metric or ""),
        "labels": list(rule.labels.items()),
        "severity": rule.severity,
        "owner": rule.owner,
        "bound": rule.rule().bound,
        "subscribe_metrics": ",".join(rule.subscribed_prefixes) or None,
        "subscribe_interval_ms": 1_000 * rule.subscribe_interval_s,
    }


def _names(rule: AlertRule) -> str:
    metric = f"metric LIKE {literal(like_pattern(rule.metric or ''))} ESCAPE '!'"
    labels = [f"attributes[{literal(k)}] = {literal(v)}" for k, v in rule.labels.items()]
    return " AND ".join([metric, *labels])
