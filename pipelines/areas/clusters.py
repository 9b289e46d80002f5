"""Which cluster a report or a page is about, and the time of its newest event."""

from collections.abc import Mapping
from datetime import datetime

from quotaflow.pipelines.errors import ConfigError, NeverMadeError, nearest
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted

# A snapshot may be newer than the clients' events, which a report is about.
_CLUSTERS = """
SELECT
    cluster_id,
    coalesce(max(CASE WHEN job <> 'snapshot' THEN event_time END), max(event_time)) AS newest
FROM pipeline_progress
WHERE cluster_id IS NOT NULL
GROUP BY cluster_id
ORDER BY newest DESC
"""


def clusters(reader: Reader) -> Mapping[str, datetime]:
    """The clusters of a warehouse, each with the time of its newest event.

    Raises NeverMadeError if the warehouse has no table at all.
    """
    try:
        return {row["cluster_id"]: row["newest"] for row in reader.rows(_CLUSTERS)}
    except NeverMadeError:
        if any(map(reader.is_made, TABLES)):
            return {}
        raise


def choose_cluster(cluster_ids: Mapping[str, datetime], cluster_id: str | None) -> str:
    """The given cluster, or the only one; empty if the tables have none yet.

    Raises ConfigError for an unknown cluster, and if there are several and none was given.
    """
    if cluster_id is not None:
        if cluster_id not in cluster_ids:
            raise ConfigError(f"no cluster {cluster_id}{nearest(cluster_id, list(cluster_ids))}")
        return cluster_id
    if len(cluster_ids) > 1:
        raise ConfigError(
            f"the tables have {counted(len(cluster_ids), 'cluster')}: choose one with --cluster: "
            + (", ".join(cluster_ids))
        )
    return next(iter(cluster_ids), "")


def newest_event(
    reader: Reader, cluster_id: str | None, pinned: str | None, now: datetime
) -> tuple[str, datetime]:
    """The given cluster, else the one that conf pins, else the only one, and its newest event.

    The event is of now if it has none, or a later one. Raises as `clusters` and `choose_cluster`.
    """
    newest = clusters(reader)
    # While the tables have no cluster, the one that conf pins is not there either.
    cluster = choose_cluster(newest, cluster_id or (pinned if newest else None))
    return cluster, min(newest.get(cluster, now), now)
