"""A snapshot of the made-up clusters of benchmarks."""

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa
from deltalake import write_deltalake

from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = ("az-a", "az-b", "az-c")
_FILLED = ("brokers", "topics", "replicas", "configs", "client_quotas")


def write(
    warehouse: Warehouse,
    cluster_id: str,
    seen: datetime,
    topics: Mapping[str, str],
    partitions: Mapping[str, range],
) -> None:
    """Three brokers in three racks that all have all partitions, led by the first.

    `topics` maps ids to names, `partitions` ids to the numbers of their partitions.
    """
    each = {"cluster_id": cluster_id, "event_time": seen, "is_removed": False}
    brokers = range(1, len(RACKS) + 1)
    placed = [
        {"topic_id": id_, "topic": name, "partition": number}
        for id_, name in topics.items()
        for number in partitions[id_]
    ]
    selector = {"config_key": "replica.selector.class", "config_value": RACK_AWARE}
    rows = dict[str, list[dict]]() | {
        "brokers": [each | {"broker_id": n, "rack": RACKS[n - 1]} for n in brokers],
        "topics": [each | {"topic_id": id_, "topic": name} for id_, name in topics.items()],
        "replicas": [
            each | at | {"broker_id": n, "is_leader": n == 1, "is_in_sync": True}
            for at in placed
            for n in brokers
        ],
        "configs": [
            each | {"entity_type": "broker", "entity_name": str(n)} | selector for n in brokers
        ],
        "client_quotas": [],
    }
    for name in _FILLED:
        fill(warehouse, name, pa.Table.from_pylist(rows[name], schema=TABLES[name].arrow))


def fill(warehouse: Warehouse, name: str, rows: pa.Table) -> None:
    """Make a table of these rows without Spark."""
    by = list(TABLES[name].partitioning) or None
    write_deltalake(warehouse.folder(name), rows, partition_by=by)
