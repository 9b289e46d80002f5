"""Every Delta table of quotaflow, once: name, meaning, columns with units, key and layout."""

from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.control import (
    CONFIG_CHANGES,
    FEEDBACK_LOCKS,
    PIPELINE_PROGRESS,
    PLANS,
    QUARANTINE,
    QUERY_PROGRESS,
)
from quotaflow.schemas.tables.fetch_sizes import FETCH_SIZES
from quotaflow.schemas.tables.fetches import FETCH_SESSIONS, FETCHES
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES, PRODUCER_ID_USES
from quotaflow.schemas.tables.quality import QUALITY_RESULTS
from quotaflow.schemas.tables.quotas import QUOTA_USAGE
from quotaflow.schemas.tables.read_faults import FETCH_FAULTS, OFFSET_LOOKUPS, REPLICA_OFFSETS
from quotaflow.schemas.tables.reassignments import REASSIGNMENT_CHANGES, REPLICA_LAG
from quotaflow.schemas.tables.replicas import PREFERRED_REPLICAS, RACK_TRAFFIC
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import (
    ACTIVE_PRODUCERS,
    CLIENT_QUOTAS,
    CLIENT_SUBSCRIPTIONS,
    CONFIGS,
    SETTINGS,
    TRANSACTIONAL_IDS,
)
from quotaflow.schemas.tables.telemetry import (
    CLIENT_METRICS,
    METRIC_ALERT_EVENTS,
    POINT,
    TELEMETRY_PUSHES,
    TELEMETRY_SUBSCRIPTIONS,
)
from quotaflow.schemas.tables.throttles import (
    REPLICATION_RATES,
    REPLICATION_THROTTLES,
    REPLICATION_TRAFFIC,
)
from quotaflow.schemas.tables.topology import BROKERS, REPLICA_SIZES, REPLICAS, TOPICS
from quotaflow.schemas.tables.traffic import TOPIC_NAMES, TRAFFIC

__all__ = [
    "ACTIVE_PRODUCERS",
    "BROKERS",
    "CLIENT_METRICS",
    "CLIENT_QUOTAS",
    "CLIENT_SUBSCRIPTIONS",
    "CONFIGS",
    "CONFIG_ALTERATIONS",
    "CONFIG_CHANGES",
    "FEEDBACK_LOCKS",
    "FETCHES",
    "FETCH_FAULTS",
    "FETCH_SESSIONS",
    "FETCH_SIZES",
    "METRIC_ALERT_EVENTS",
    "OFFSET_LOOKUPS",
    "PIPELINE_PROGRESS",
    "PLANS",
    "POINT",
    "PREFERRED_REPLICAS",
    "PRODUCER_ID_RATES",
    "PRODUCER_ID_USES",
    "QUALITY_RESULTS",
    "QUARANTINE",
    "QUERY_PROGRESS",
    "QUOTA_USAGE",
    "RACK_TRAFFIC",
    "REASSIGNMENT_CHANGES",
    "REPLICAS",
    "REPLICATION_RATES",
    "REPLICATION_THROTTLES",
    "REPLICATION_TRAFFIC",
    "REPLICA_LAG",
    "REPLICA_OFFSETS",
    "REPLICA_SIZES",
    "REQUESTS",
    "SETTINGS",
    "TABLES",
    "TELEMETRY_PUSHES",
    "TELEMETRY_SUBSCRIPTIONS",
    "TOPICS",
    "TOPIC_NAMES",
    "TRAFFIC",
    "TRANSACTIONAL_IDS",
]

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        REQUESTS,
        TELEMETRY_PUSHES,
        TELEMETRY_SUBSCRIPTIONS,
        CLIENT_METRICS,
        FETCHES,
        FETCH_SESSIONS,
        PRODUCER_ID_USES,
        PRODUCER_ID_RATES,
        METRIC_ALERT_EVENTS,
        TRAFFIC,
        TOPIC_NAMES,
        QUOTA_USAGE,
        PREFERRED_REPLICAS,
        REPLICA_OFFSETS,
        FETCH_FAULTS,
        OFFSET_LOOKUPS,
        FETCH_SIZES,
        RACK_TRAFFIC,
        REPLICA_LAG,
        REASSIGNMENT_CHANGES,
        CONFIG_ALTERATIONS,
        REPLICATION_TRAFFIC,
        REPLICATION_RATES,
        REPLICATION_THROTTLES,
        BROKERS,
        TOPICS,
        REPLICAS,
        REPLICA_SIZES,
        CONFIGS,
        CLIENT_QUOTAS,
        ACTIVE_PRODUCERS,
        TRANSACTIONAL_IDS,
        CLIENT_SUBSCRIPTIONS,
        SETTINGS,
        PLANS,
        CONFIG_CHANGES,
        FEEDBACK_LOCKS,
        QUARANTINE,
        PIPELINE_PROGRESS,
        QUERY_PROGRESS,
        QUALITY_RESULTS,
    )
}
