"""The brokers that snapshots have: of names, only their numbers count as brokers."""

from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.tables.declared import BROKERS


def known_brokers(tables: Reader, cluster_id: str) -> tuple[int, ...]:
    """Ids of a cluster's current brokers; none before its first snapshot. Raises QueryError."""
    made = tables.with_empty(frozenset({BROKERS.name}))
    sql = f"SELECT broker_id FROM current_brokers WHERE cluster_id = {literal(cluster_id)}"
    return tuple(sorted(row["broker_id"] for row in made.rows(sql)))
