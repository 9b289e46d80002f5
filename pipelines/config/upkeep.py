"""Sections of conf about upkeep, health and quality checks."""

import difflib
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from quotaflow.pipelines.config.base import LONGEST_LEASE_S, LONGEST_S, Days, Seconds, Section

_FACTS = 30
_RESULTS = 90
_AUDIT = 1_095
# Offsets change at every snapshot, and only their last days are read.
_OFFSETS = 7
# Renewals of leases are read this far back: twice the longest lease. Rows of owned configs stay.
MIN_DAYS = {"config_changes": 2 * LONGEST_LEASE_S // 86_400}
_TABLES: dict[int | None, tuple[str, ...]] = {
    _FACTS: (
        *("requests", "telemetry_pushes", "client_metrics", "fetches", "address_clients"),
        "quarantine",
    ),
    _RESULTS: (
        *("telemetry_subscriptions", "producer_id_uses", "producer_id_rates"),
        "request_times",
        *("traffic", "quota_usage", "preferred_replicas", "replica_offsets", "fetch_faults"),
        *("offset_lookups", "fetch_sizes", "remote_reads", "rack_traffic", "replica_lag"),
        *("replication_traffic", "replication_rates", "replication_throttles"),
        *("group_members", "group_commits", "group_member_events", "share_fetches"),
        *("replica_sizes", "moving_replicas", "groups", "group_assignments"),
        *("active_producers", "transactional_ids", "query_progress", "quality_results"),
    ),
    _AUDIT: (
        *("metric_alert_events", "topic_names", "reassignment_changes", "config_alterations"),
        *("plans", "config_changes", "pipeline_progress"),
    ),
    _OFFSETS: ("group_offsets", "partition_offsets"),
    None: ("brokers", "topics", "replicas", "configs", "client_quotas", "settings"),
}
RETENTION_DAYS = {table: days for days, tables in _TABLES.items() for table in tables}
"""Days that rows are kept by default; None: they are never removed.

A table that is not here has only the current state, and its writer removes old rows.
"""


class UpkeepSection(Section):
    """How long rows are kept, by table and event_time: docs/upkeep.md.

    In a table of snapshots only rows that are no longer current are removed.
    """

    retention_days: dict[str, Days | None] = Field(default={})
    """Table to the whole days that its rows are kept, null for good; `config_changes` at least 60.
    docs/upkeep.md#how-long-are-rows-kept has the time of other tables.
    """
    vacuum_after_h: Annotated[int, Field(ge=168, le=LONGEST_S // 3_600)] = 168
    """Hours after which a file that no version of its table needs is deleted; at least these."""
    minutes_after_days: Days | None = 1
    """Whole days after which windows of `quota_usage` become rows of minutes, counted back from the
    newest window of their cluster; null: never (docs/upkeep.md#rolled-up-rows).
    """
    hours_after_days: Days | None = 7
    """The same for rows of hours; not less than `minutes_after_days`."""

    @field_validator("retention_days")
    @classmethod
    def _of_tables(cls, days: dict[str, int | None]) -> dict[str, int | None]:
        for table, kept in days.items():
            if table not in RETENTION_DAYS:
                raise ValueError(f"no retention for {table}: {_hint(table)}")
            least = MIN_DAYS.get(table, 1)
            if kept is not None and kept < least:
                raise ValueError(f"{table} must be kept for {least} days at least, not {kept}")
        return days

    @model_validator(mode="after")
    def _minutes_first(self) -> Self:
        minutes, hours = self.minutes_after_days, self.hours_after_days
        if minutes is not None and hours is not None and minutes > hours:
            raise ValueError(
                f"minutes_after_days is {minutes} and hours_after_days {hours}: rows of minutes "
                "become rows of hours, so it must not be greater"
            )
        return self

    def days(self, table: str) -> int | None:
        """How many days rows of a table are kept; None: they are never removed."""
        return (RETENTION_DAYS | self.retention_days).get(table)


def _hint(table: str) -> str:
    from quotaflow.schemas.tables.catalog import TABLES  # noqa: PLC0415  it takes half a second

    if table in TABLES:
        return "it has only the current state"
    near = difflib.get_close_matches(table, RETENTION_DAYS, n=1)
    return f"did you mean {near[0]}?" if near else f"tables are {', '.join(RETENTION_DAYS)}"


Share = Annotated[float, Field(ge=0, le=1)]


class HealthSection(Section):
    """Bounds past which `quotaflow status` and the metrics of `run` report a problem; `doctor`
    warns of a full disk.
    """

    max_silence_s: Seconds = 1_800
    """Seconds in which a job did not ask for new data."""
    max_behind_s: Seconds = 1_800
    """Seconds that data has waited unread."""
    max_quarantined_share: Share = 0.01
    """Share of a job's rows of its last hour of work that went to `quarantine`, or that the
    receiver of `monitoring.forward` refused; 0 to 1.
    """
    max_late_share: Share = 0.05
    """Share of rows that were too late."""
    min_free_share: Share = 0.1
    """Share of a disk of the tables or checkpoints that must be free; 0 to 1."""


class QualitySection(Section):
    """Whether a plan needs checked tables."""

    required: bool = False
    """Whether a plan uses only tables that were checked (docs/quality.md)."""
