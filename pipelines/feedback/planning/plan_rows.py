"""Frozen plans as rows of the table plans, and back: what a person approves is what is applied."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.feedback.configs.change import Change, Operation, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig

_ROW = (
    *("cluster_id", "entity_type", "entity_name", "entity_client_id", "config_key"),
    *("reason", "evidence_table", "evidence_key", "since", "priority", "observed", "direction"),
)
_CHANGE = ("lease_s", "risk", "note", "command", "change_id", "purpose")


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
    columns = {name: row[name] for name in _ROW} | {"since": row["since"].astimezone(UTC)}
    desired = DesiredConfig(
        **columns, config_value=row["desired_value"], prior_value=row["prior_value"], lease_s=None
    )
    operation = Operation(row["operation"], row["operand"])
    return Change(
        desired,
        row["config_value"],
        operation,
        row["command"],
        row["note"],
        row["lease_s"],
        row["purpose"],
    )
