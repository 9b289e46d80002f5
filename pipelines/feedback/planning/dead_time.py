"""The dead time of the loop: how long a write takes to show in results."""

from datetime import timedelta

from quotaflow.pipelines.warehouse.tables import Tables
from quotaflow.schemas.tables.control import CONFIG_CHANGES, PIPELINE_PROGRESS, QUERY_PROGRESS

MEASURED = """
    SELECT max(dead_time_s) AS dead_time_s
    FROM feedback_dead_times
    WHERE {0}
"""
_INPUTS = (CONFIG_CHANGES, PIPELINE_PROGRESS, QUERY_PROGRESS)


def measured(tables: Tables, cluster: str, otherwise: timedelta) -> timedelta:
    """The dead time of a cluster, by its last 20 changes; `otherwise` while too few show.

    `cluster` is SQL that is true for rows of the cluster.
    """
    if not all(tables.is_made(table.name) for table in _INPUTS):
        return otherwise
    (row,) = tables.rows(MEASURED.format(cluster))
    seconds = row["dead_time_s"]
    return otherwise if seconds is None else timedelta(seconds=seconds)
