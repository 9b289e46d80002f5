"""Frozen plans as rows of the table plans, and back: what a person approved is what is applied."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.config.base import LONGEST_LEASE_S
from quotaflow.pipelines.feedback.change import RENEW, Change, Operation, Plan
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.ledger import Record

_ENTITY = ("cluster_id", "entity_type", "entity_name", "entity_client_id")
_ROW = (*_ENTITY, "config_key", "reason", "evidence_table", "evidence_key", "since", "priority")
_CHANGE = ("lease_s", "risk", "note", "command", "change_id")


def rows(plan: Plan, now: datetime, planned_by: str) -> Iterator[dict[str, Any]]:
    """The rows of table plans, one per change."""
    for number, change in enumerate(plan.changes):
        row = change.desired
        yield (
            {name: getattr(row, name) for name in _ROW}
            | {name: getattr(change, name) for name in _CHANGE}
            | {
                "event_time": now,
                "plan_id": plan.plan_id,
                "number": number,
                "operation": change.operation.name,
                "operand": change.operation.operand,
                "prior_value": row.prior_value,
                "config_value": change.value,
                "desired_value": row.config_value,
                "planned_by": planned_by,
            }
        )


def changes(rows_read: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """The changes of one frozen plan, in their order."""
    return tuple(_change(row) for row in sorted(rows_read, key=lambda row: int(row["number"])))


def _change(row: Mapping[str, Any]) -> Change:
    told = {name: row[name] for name in _ROW} | {"since": row["since"].astimezone(UTC)}
    desired = DesiredConfig(
        **told, config_value=row["desired_value"], prior_value=row["prior_value"], lease_s=None
    )
    operation = Operation(row["operation"], row["operand"])
    return Change(
        desired, row["config_value"], operation, row["command"], row["note"], row["lease_s"]
    )


_ENTITY = ("cluster_id", "entity_type", "entity_name", "entity_client_id")
_FIELDS = tuple(field.name for field in fields(Record) if field.name != "entity")
_TIMES = ("event_time", "expires_at")
# A lease may be renewed for years, and what it holds is told by the write that began it. Renewals
# older than twice the longest lease renew nothing any more.
SELECT = f"""
    SELECT {", ".join((*_ENTITY, *_FIELDS))} FROM config_changes
    WHERE operation <> '{RENEW}'
        OR event_time > now() - INTERVAL '{2 * LONGEST_LEASE_S // 86_400} days'
"""


def row(record: Record, run_by: str) -> dict[str, Any]:
    """A row of config_changes; `run_by` is who ran the command."""
    of = record.entity
    entity = (of.cluster_id, of.entity_type, of.entity_name, of.client_id)
    told = {name: getattr(record, name) for name in _FIELDS}
    return dict(zip(_ENTITY, entity, strict=True)) | told | {"run_by": run_by}


def record(row: dict[str, Any]) -> Record:
    """A record as it was."""
    entity = ConfigEntity(*(row[name] for name in _ENTITY))
    told = {name: row[name] for name in _FIELDS}
    times = {name: told[name] and told[name].astimezone(UTC) for name in _TIMES}
    return Record(entity=entity, **(told | times))
