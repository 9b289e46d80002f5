"""Levels: what a cluster lets this pipeline read, from its Admin API alone to every request.

Each level has all that those before it have. A table is of the first level at which it can have
rows, and so is an answer. A view says in its head, in `needs`, from which level on it has rows; of
a whole log, if a sample of its lines would mislead.
"""

from collections.abc import Iterable

ADMIN_API, TELEMETRY, SAMPLED_LOG, WHOLE_LOG = (
    "admin_api",
    "telemetry",
    "sampled_log",
    "whole_log",
)
LEVELS = (ADMIN_API, TELEMETRY, SAMPLED_LOG, WHOLE_LOG)
"""All levels, the least first."""

IN_WORDS = {
    ADMIN_API: "the Admin API alone",
    TELEMETRY: "client telemetry",
    SAMPLED_LOG: "a request log, sampled or whole",
    WHOLE_LOG: "a whole request log",
}
"""What a level needs, in words."""

_OF_THE_ADMIN_API = frozenset(
    {
        # Snapshots, and what follows from them.
        *("brokers", "topics", "replicas", "replica_sizes", "moving_replicas", "configs"),
        *("client_quotas", "active_producers", "transactional_ids", "settings"),
        *("groups", "group_assignments", "group_offsets", "partition_offsets"),
        *("group_lag", "why_groups_lag"),
        *("producer_id_rates", "expiration_proposals", "leftover_proposals"),
        # What this pipeline records of its own work.
        *("quarantine", "pipeline_progress", "query_progress", "answer_state", "plans"),
        *("config_changes", "feedback_locks", "quality_results"),
    }
)
_OF_TELEMETRY = frozenset(
    {"telemetry_pushes", "client_metrics", "metric_alert_events", "client_coverage"}
)


def of_table(name: str) -> str:
    """The first level at which a table can have rows."""
    if name in _OF_THE_ADMIN_API:
        return ADMIN_API
    return TELEMETRY if name in _OF_TELEMETRY else SAMPLED_LOG


def required(tables: Iterable[str], needs: str) -> set[str]:
    """Those of the tables that a view or answer of this level cannot do without.

    Those of a higher level may not exist: then they have no rows.
    """
    return {name for name in tables if LEVELS.index(of_table(name)) <= LEVELS.index(needs)}
