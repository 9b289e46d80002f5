"""`metric_alert_events`: readings of client metrics past a bound for too long (KIP-714)."""

from collections.abc import Sequence

import pyarrow as pa

from quotaflow.pipelines.config import AlertsSection
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.engine import texts
from quotaflow.pipelines.incremental.result import Result
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.columns import TAGS
from quotaflow.schemas.table import DOUBLE, INT, STRING
from quotaflow.schemas.tables.telemetry import CLIENT_METRICS, METRIC_ALERT_EVENTS
from quotaflow.udfs import alerts
from quotaflow.udfs.engine.rule import Rule, Walk

_HOUR_S = 3_600
_RULES = pa.schema(
    [
        pa.field("rule", STRING),
        pa.field("pattern", STRING),
        pa.field("labels", TAGS),
        pa.field("bound", DOUBLE),
        pa.field("subscribe_metrics", STRING),
        pa.field("subscribe_interval_ms", INT),
    ]
)
_LIKE = str.maketrans({"*": "%", "%": "!%", "_": "!_", "!": "!!"})
_CALCULATED = {*alerts.READINGS.names, *alerts.EVENT.names, "event_time"}


def result(conf: AlertsSection) -> Result:
    """The declaration of the result.

    An open alert has a new row every hour. So a row depends on rows at most that far and one
    stale_s back, and a breach without a row yet on those of its for_s and stale_s.
    """
    reaches_s = [rule.stale_s + max(rule.for_s, _HOUR_S) for rule in conf.rules]
    longest_s = max([2 * _HOUR_S, *reaches_s])
    return Result(
        table=METRIC_ALERT_EVENTS,
        rule=_rule(conf.rules),
        facts=CLIENT_METRICS,
        relevant=_relevant(conf.rules),
        bucket_s=60,
        lookback_s=longest_s,
        carry_s=longest_s,
        carry_key=alerts.KEY,
        split_by=("cluster_id", "series_id"),
    )


def _rule(rules: Sequence[AlertRule]) -> Rule:
    of_reading = [
        field
        for field in METRIC_ALERT_EVENTS.arrow
        if field.name in CLIENT_METRICS.column_names and field.name not in _CALCULATED
    ]
    events = Walk(
        name="alert_events",
        sql=texts.read("metric_alert_readings.sql"),
        schema=pa.schema([*alerts.READINGS, *of_reading, *alerts.EVENT, alerts.ALERT_ID]),
        function=alerts.find_alerts({rule.name: rule.rule() for rule in rules}),
    )
    return texts.rule(
        METRIC_ALERT_EVENTS,
        "metric_alert_events.sql",
        rows={"alert_rules": pa.Table.from_pylist(list(map(_row, rules)), schema=_RULES)},
        walks=(events,),
    )


def _row(rule: AlertRule) -> dict[str, object]:
    return {
        "rule": rule.name,
        "pattern": _pattern(rule),
        "labels": list(rule.labels.items()),
        "bound": rule.rule().bound,
        "subscribe_metrics": ",".join(rule.subscribed_prefixes) or None,
        "subscribe_interval_ms": 1_000 * rule.subscribe_interval_s,
    }


def _pattern(rule: AlertRule) -> str:
    """The rule's metric for LIKE with the escape character !, in which * matches any text."""
    return rule.metric.translate(_LIKE)


def _relevant(rules: Sequence[AlertRule]) -> str:
    """SQL that is true for readings that any rule names; NaN ('no samples') is no number."""
    named = " OR ".join(f"({_names(rule)})" for rule in rules) or "false"
    return f"NOT isnan(value) AND ({named})"


def _names(rule: AlertRule) -> str:
    metric = f"metric LIKE {literal(_pattern(rule))} ESCAPE '!'"
    labels = [f"attributes[{literal(k)}] = {literal(v)}" for k, v in rule.labels.items()]
    return " AND ".join([metric, *labels])
