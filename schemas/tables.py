"""Every Delta table of quotaflow, once: name, meaning, columns with units, key and layout."""

from quotaflow.schemas.control_tables import PIPELINE_PROGRESS, QUARANTINE
from quotaflow.schemas.request_tables import REQUESTS
from quotaflow.schemas.result_tables import METRIC_ALERT_EVENTS, PRODUCER_ID_RATES
from quotaflow.schemas.snapshot_tables import CLIENT_SUBSCRIPTIONS, CONFIGS
from quotaflow.schemas.table import Table
from quotaflow.schemas.telemetry_tables import (
    CLIENT_METRICS,
    POINT,
    TELEMETRY_PUSHES,
    TELEMETRY_SUBSCRIPTIONS,
)

__all__ = [
    "CLIENT_METRICS",
    "CLIENT_SUBSCRIPTIONS",
    "CONFIGS",
    "METRIC_ALERT_EVENTS",
    "PIPELINE_PROGRESS",
    "POINT",
    "PRODUCER_ID_RATES",
    "QUARANTINE",
    "REQUESTS",
    "TABLES",
    "TELEMETRY_PUSHES",
    "TELEMETRY_SUBSCRIPTIONS",
]

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        REQUESTS,
        TELEMETRY_PUSHES,
        TELEMETRY_SUBSCRIPTIONS,
        CLIENT_METRICS,
        PRODUCER_ID_RATES,
        METRIC_ALERT_EVENTS,
        CONFIGS,
        CLIENT_SUBSCRIPTIONS,
        QUARANTINE,
        PIPELINE_PROGRESS,
    )
}
