"""`metric_alert_events`: readings of client metrics past a bound for too long (KIP-714)."""

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.config import AlertsSection
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.schemas.table import sql_type
from quotaflow.schemas.tables.telemetry import CLIENT_METRICS, METRIC_ALERT_EVENTS
from quotaflow.udfs import alerts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HOUR_S = 3_600
_OF_READING = [
    name for name in CLIENT_METRICS.column_names if name in METRIC_ALERT_EVENTS.column_names
]
_LIKE = str.maketrans({"*": "%", "%": r"\%", "_": r"\_", "\\": r"\\"})
_READ = ["rule", "event_ms", *(name for name in _OF_READING if name != "event_time")]


def result(conf: AlertsSection) -> Result:
    """The result as the driver takes it.

    An open alert has a new row every hour. So a row depends on rows at most that far and one
    stale_s back, and a breach without a row yet on those of its for_s and stale_s.
    """
    reaches_s = [rule.stale_s + max(rule.for_s, _HOUR_S) for rule in conf.rules]
    longest_s = max([2 * _HOUR_S, *reaches_s])
    return Result(
        table=METRIC_ALERT_EVENTS,
        facts=CLIENT_METRICS,
        bucket_s=60,
        lookback_s=longest_s,
        is_relevant=partial(matches_rule, rules=conf.rules),
        prepare=partial(readings, rules=conf.rules),
        compute=partial(events, rules=conf.rules),
        carry_s=longest_s,
        carry_key=alerts.KEY,
    )


def matches_rule(*, rules: Sequence[AlertRule]) -> Column:
    """Whether any rule speaks of a reading; NaN ('no samples') is no number."""
    is_number = F.col("value").isNotNull() & ~F.isnan("value")
    return is_number & reduce(or_, map(_speaks_of, rules), F.lit(False))


def readings(metrics: "DataFrame", *, rules: Sequence[AlertRule]) -> "DataFrame":
    """A row of a reading for each rule that speaks of it."""
    named = [F.when(_speaks_of(rule), F.lit(rule.name)) for rule in rules]
    of_rules = F.array_compact(F.array(*named)).cast("array<string>")
    return metrics.select(*_OF_READING, F.explode(of_rules).alias("rule"))


def _speaks_of(rule: AlertRule) -> Column:
    # LIKE, and not a regular expression: Delta skips files by the text before the first %.
    matches = F.col("metric").like(rule.metric.translate(_LIKE))
    for key, value in rule.labels.items():
        matches &= F.try_element_at("attributes", F.lit(key)) == F.lit(value)
    return matches


def events(inputs: RuleInputs, *, rules: Sequence[AlertRule]) -> "DataFrame":
    """Readings to rows of the table."""
    event_ms = F.unix_millis("event_time").alias("event_ms")
    rows = inputs.facts.select("*", event_ms).select(*_READ)
    rows = rows.withColumns({f.name: F.lit(None).cast(sql_type(f.type)) for f in alerts.EVENT})
    rows = rows.withColumn("is_carried", F.lit(False))
    if inputs.carried_rows is not None:
        carried = inputs.carried_rows.withColumns(
            {
                "event_ms": F.unix_millis("event_time"),
                "first_breach_ms": F.unix_millis("first_breach"),
                "is_carried": F.lit(True),
            }
        )
        rows = rows.unionByName(carried.select(rows.columns))
    find = alerts.find_alerts({rule.name: rule.rule() for rule in rules})
    ordered = rows.repartition(*alerts.KEY).sortWithinPartitions(*alerts.ORDER)
    return _as_table(ordered.mapInArrow(find, ordered.schema), rules)


def _as_table(rows: "DataFrame", rules: Sequence[AlertRule]) -> "DataFrame":
    identity = F.xxhash64("cluster_id", "rule", "series_id", "first_breach_ms")
    metrics = {rule.name: ",".join(rule.subscribed_prefixes) or None for rule in rules}
    every_ms = {rule.name: 1_000 * rule.subscribe_interval_s for rule in rules}
    return rows.withColumns(
        {
            "event_time": F.timestamp_millis("event_ms"),
            "event_date": F.to_date(F.timestamp_millis("event_ms")),
            "first_breach": F.timestamp_millis("first_breach_ms"),
            "alert_id": F.lower(F.lpad(F.hex(identity), 16, "0")),
            "bound": _of_rule({rule.name: rule.rule().bound for rule in rules}, "double"),
            "subscribe_metrics": _of_rule(metrics, "string"),
            "subscribe_interval_ms": _of_rule(every_ms, "int"),
        }
    ).select(METRIC_ALERT_EVENTS.column_names)


def _of_rule(values: Mapping[str, object], type_: str) -> Column:
    """What conf says of a row's rule; null where the rule is gone from it."""
    pairs = [F.lit(x) for pair in values.items() for x in pair]
    by_rule = F.create_map(*pairs).cast(f"map<string, {type_}>")
    return F.try_element_at(by_rule, F.col("rule"))
