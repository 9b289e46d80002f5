"""Tables read back by another reader than the one that wrote them (delta-rs, no JVM)."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from deltalake import write_deltalake

from quotaflow.demo import raw_pushes
from quotaflow.pipelines import config
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

# What a cluster is configured to do when somebody looks, and what was done about it.
_NOT_OF_LOGS = {
    *("plans", "config_changes", "feedback_locks", "query_progress"),
    "quality_results",
    "client_subscriptions",
    "replication_rates",
    "replication_throttles",
    *(name for name, table in TABLES.items() if "is_removed" in table.column_names),
}


def query(place: Path | Conf, sql: str) -> list[dict[str, Any]]:
    """Rows of a query over a warehouse: its folder, or conf that names it."""
    if isinstance(place, Path):
        place = config.Conf(warehouse=config.WarehouseSection(path=str(place)))
    reader = FolderReader(Warehouse(place.warehouse))
    rows: list[dict[str, Any]] = reader.query(sql).read_all().to_pylist()
    return rows


def make_missing(conf: Conf) -> None:
    """Make the tables that no job of a test fills, empty, for views that read them too."""
    for table in TABLES.values():
        folder = Warehouse(conf.warehouse).folder(table.name)
        if not folder.is_dir():
            partition_by = list(table.partitioning) or None
            write_deltalake(folder, table.arrow.empty_table(), partition_by=partition_by)


POINTS = (
    "* EXCEPT (record_time, event_time), "
    f"CASE WHEN metric <> '{raw_pushes.METRIC}' THEN event_time END AS event_time"
)
"""Of client_metrics: all but what differs with the way that a push came first."""
_COLUMNS = {
    "client_metrics": POINTS,
    "quota_usage": "event_time, principal, client_id, quota_type, usage, request_count",
    "preferred_replicas": (
        "event_time, principal, client_id, client_rack, partition, broker_id, api_version, "
        "fetches, bytes, redirects, preferred_read_replica"
    ),
    "rack_traffic": "event_time, flow, broker_id, sum(requests), sum(bytes)",
    "replica_offsets": "event_time, broker_id, sum(answers), sum(follower_fetches)",
    "fetch_faults": "event_time, client_id, broker_id, sum(answers)",
    "fetch_sizes": "* EXCEPT (largest_oversized)",
    "replication_traffic": "event_time, leader_id, follower_id, sum(fetches), sum(bytes)",
}
"""What is compared of a table, where that is not all of it."""

_OF_LOG = {
    "producer_id_rates": "WHERE kind = 'allocation'",
    "quota_usage": "WHERE quota_type <> 'controller_mutation_rate'",
    "rack_traffic": "GROUP BY event_time, flow, broker_id",
    "replica_offsets": "GROUP BY event_time, broker_id",
    "fetch_faults": "GROUP BY event_time, client_id, broker_id",
    "replication_traffic": "GROUP BY event_time, leader_id, follower_id",
}
"""The rows that are compared, by what a log alone has."""


def contents(folder: Path, names: Collection[str]) -> dict[str, Counter[str]]:
    """These tables as multisets of rows; of pipeline_progress what ingest counted in all.

    Of a push that comes on two ways the first is decoded, and which one that is may differ: so may
    the time of points that tell none, which is the push's. What results look up in snapshots is
    left out.
    """
    tables = {
        name: Counter(
            repr(row)
            for row in query(
                folder, f"SELECT {_COLUMNS.get(name, '*')} FROM {name} {_OF_LOG.get(name, '')}"
            )
        )
        for name in TABLES
        if name in names and name not in {"pipeline_progress", *_NOT_OF_LOGS}
    }
    totals = query(
        folder,
        "SELECT job, target, outcome, reason, sum(row_count) AS row_count FROM pipeline_progress "
        "WHERE job LIKE 'ingest%' GROUP BY job, target, outcome, reason",
    )
    return tables | {"pipeline_progress": Counter(repr(row) for row in totals)}
