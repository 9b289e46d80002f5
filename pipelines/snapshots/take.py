"""`quotaflow snapshot`: what the cluster says of itself, as rows of what changed since the last."""

from collections.abc import Callable
from datetime import datetime

from quotaflow.pipelines import admin, client_metrics_admin, session
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.sinks import Batch
from quotaflow.pipelines.snapshots import client_subscriptions, configs
from quotaflow.pipelines.snapshots.snapshot import Snapshot
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas import tables

JOB = "snapshot"


def take(conf: Conf, now: datetime, report: Callable[[str], None]) -> int:
    """Ask the cluster, write what changed, and tell of each table; returns the rows written.

    Raises KafkaError when the cluster cannot be reached or refuses, before anything is written.
    """
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        cluster = admin.describe(conf.kafka.properties, [], conf.kafka.cluster_id)
        resources = client_metrics_admin.read(conf.kafka.properties)
        spark = session.get(conf.spark, report)
        warehouse.ensure(spark, tables.TABLES.values())
        # No checkpoint: the time tells one snapshot from the next.
        batch = Batch(warehouse, JOB, JOB, round(now.timestamp() * 1_000))
        snapshot = Snapshot(spark, batch, cluster.cluster_id, now)
        scope = {"entity_type": configs.CLIENT_METRICS}
        counts = [
            snapshot.append_changes(tables.CONFIGS, configs.of_client_metrics(resources), scope),
            *client_subscriptions.replace(snapshot, resources),
        ]
        for count in counts:
            if count.rows or count.outcome == "out":
                reason = f" ({count.outcome}: {count.reason})" if count.reason else ""
                report(f"snapshot: {count.rows} rows of {count.target}{reason}")
        if any(count.rows for count in counts):
            batch.report(spark, counts, cluster.cluster_id, now)
        return sum(count.rows for count in counts if count.outcome == "out")
