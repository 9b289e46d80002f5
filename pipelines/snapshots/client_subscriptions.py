"""`client_subscriptions`: what resources give each client, beside what it got (KIP-714)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.snapshots.observations import ObservedRows, Row
from quotaflow.pipelines.snapshots.snapshot import Snapshot, left_out
from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.streaming.sinks import Count
from quotaflow.schemas import ddl
from quotaflow.schemas.configs import CLIENT_METRICS
from quotaflow.schemas.table import sql_type
from quotaflow.schemas.tables.snapshots import CLIENT_SUBSCRIPTIONS, CONFIGS
from quotaflow.schemas.tables.telemetry import TELEMETRY_SUBSCRIPTIONS
from quotaflow.udfs.rules.client_metrics import Subscription
from quotaflow.udfs.subscriptions import PREDICTED, predict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE = CLIENT_SUBSCRIPTIONS
SEEN_WITHIN = timedelta(days=1)


def replace(snapshot: Snapshot, seen: ObservedRows) -> list[Count]:
    """Replace the rows of this cluster by the configs of its client-metrics resources.

    If a part of them is unanswered, the table stays as it is. A resource whose match cannot be
    evaluated outside Java is left out and counted.
    """
    if seen.unanswered:
        return left_out(_TABLE, seen.unanswered)
    resources = _by_name(seen.rows.to_pylist())
    subscriptions = evaluable(resources)
    rows = compared(_recent_answers(snapshot), subscriptions, F.lit(_last_change(snapshot)))
    timed = rows.withColumn("snapshot_time", F.lit(snapshot.now)).select(_TABLE.column_names)
    with cached(timed) as kept:
        where = f"cluster_id = {ddl.quoted(snapshot.cluster_id)}"
        snapshot.batch.replace(kept, _TABLE, where)
        unread = len(resources) - len(subscriptions)
        return [
            Count("in", len(resources), _TABLE.name),
            Count("out", kept.count(), _TABLE.name),
            Count("left_out", unread, _TABLE.name, "match_not_evaluable"),
        ]


def _by_name(configs: Iterable[Row]) -> dict[str, dict[str, str]]:
    resources: dict[str, dict[str, str]] = defaultdict(dict)
    for each in configs:
        resources[each["entity_name"]][each["config_key"]] = each["config_value"]
    return resources


def evaluable(resources: Mapping[str, Mapping[str, str]]) -> list[Subscription]:
    """The resources whose match can be evaluated outside Java."""
    subscriptions = []
    for name, configs in resources.items():
        with suppress(ValueError):
            subscriptions.append(Subscription.from_configs(name, configs))
    return subscriptions


def _recent_answers(snapshot: Snapshot) -> "DataFrame":
    answers = snapshot.batch.warehouse.read(snapshot.spark, TELEMETRY_SUBSCRIPTIONS.name)
    is_recent = F.col("event_time") > F.lit(snapshot.now - SEEN_WITHIN)
    return answers.where((F.col("cluster_id") == snapshot.cluster_id) & is_recent)


def _last_change(snapshot: Snapshot) -> datetime | None:
    configs = snapshot.batch.warehouse.read(snapshot.spark, CONFIGS.name)
    of_cluster = configs.where(
        (F.col("cluster_id") == snapshot.cluster_id) & (F.col("entity_type") == CLIENT_METRICS)
    )
    newest: datetime | None = of_cluster.agg(F.max("event_time")).collect()[0][0]
    return newest


def compared(
    answers: "DataFrame", subscriptions: list[Subscription], changed_at: Column
) -> "DataFrame":
    """The last good answer to each instance, compared with what `subscriptions` predict.

    `changed_at` is when a snapshot last saw them change: an earlier answer may be of older ones.
    """
    newest = F.max_by(F.struct("*"), "event_time").alias("newest")
    last = answers.where("error_code = 0").groupBy("cluster_id", "client_instance_id").agg(newest)
    delivered = last.select(
        *(f"newest.{n}" for n in _TABLE.column_names if n in answers.columns),
        F.array_sort("newest.requested_metrics").alias("delivered_metrics"),
        F.col("newest.push_interval_ms").alias("delivered_interval_ms"),
    )
    added = ", ".join(f"{f.name} {sql_type(f.type)}" for f in PREDICTED)
    schema = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in delivered.schema)
    predicted = delivered.mapInArrow(predict(subscriptions), f"{schema}, {added}")
    as_predicted = (F.col("predicted_metrics") == F.col("delivered_metrics")) & (
        F.col("predicted_interval_ms") == F.col("delivered_interval_ms")
    )
    state = (
        F.when(as_predicted, "as_predicted")
        .when(F.col("event_time") <= changed_at, "pending")
        .otherwise("differs")
    )
    return predicted.withColumn("state", state)
