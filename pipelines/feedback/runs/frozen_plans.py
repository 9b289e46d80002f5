"""Plans frozen in the table plans: what a person approves is what is applied."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.feedback.configs.change import Change, FrozenPlan, Operation, Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.writing.exclusive_section import (
    RowAppender,
    next_record_time,
    whoami,
)
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.tables.declared import PLANS

_NEWEST = "SELECT plan_id FROM plans GROUP BY plan_id ORDER BY max(event_time) DESC LIMIT 20"
_FROZEN_AT = "SELECT max(event_time) AS at FROM plans WHERE plan_id = {}"
_NEWEST_FREEZE = """
    SELECT *
    FROM plans
    WHERE plan_id = {0} AND event_time = (SELECT max(event_time) FROM plans WHERE plan_id = {0})
"""
_ROW = (
    *("cluster_id", "entity_type", "entity_name", "entity_client_id", "config_key"),
    *("reason", "evidence_table", "evidence_key", "since", "priority", "observed", "direction"),
)
_CHANGE = ("lease_s", "risk", "note", "command", "change_id", "purpose")


def save(context: Context, plan: Plan, now: datetime, report: Callable[[str], None]) -> None:
    """Freeze a plan, unless it is frozen already and waits to be applied.

    Raises LockedError while another process writes tables, JobError if plans cannot be written.
    """
    rows = RowAppender.from_conf(context.writes, report)
    with rows.warehouse.lock():
        rows.ensure([PLANS])
        tables = rows.tables()
        ledger = journal.read_ledger(tables)
        max_age = timedelta(seconds=context.plans.plan.max_plan_age_s)
        refreeze(tables, rows, ledger, plan, now, max_age=max_age)


def refreeze(
    tables: Reader,
    rows: RowAppender,
    ledger: Ledger,
    plan: Plan,
    now: datetime,
    *,
    max_age: timedelta,
) -> None:
    """The same for a caller that has the warehouse's lock.

    The same changes have the same plan id, but an approval ends: a plan that was applied since, or
    whose freeze is older than `max_age`, is frozen again with a new time.
    """
    (frozen,) = tables.rows(_FROZEN_AT.format(literal(plan.plan_id)))
    at = frozen["at"] and frozen["at"].astimezone(UTC)
    if at is None or now - at > max_age or done_since(ledger, plan, at):
        after_all = next_record_time(ledger.newest_at, now)
        rows.append(PLANS, list(to_rows(plan, after_all, whoami())))


def done_since(ledger: Ledger, plan: Plan, at: datetime) -> set[str]:
    """The ids of changes that were written since that freeze: for these the plan is used up."""
    times = {c.change_id: ledger.done_at.get((plan.plan_id, c.change_id)) for c in plan.changes}
    return {change_id for change_id, done in times.items() if done is not None and done >= at}


def load(tables: Reader, plan_id: str) -> FrozenPlan:
    """The newest freeze of a plan. Raises ConfigError if there is none of this id."""
    is_made = tables.is_made(PLANS.name)
    rows = tables.rows(_NEWEST_FREEZE.format(literal(plan_id))) if is_made else []
    if not rows:
        plan_ids = [row["plan_id"] for row in tables.rows(_NEWEST)] if is_made else []
        near = nearest(plan_id, plan_ids) if plan_ids else ""
        raise ConfigError(f"no plan {plan_id} was frozen{near}: quotaflow plan --save does")
    plan = Plan(to_changes(rows), ())
    in_order = sorted(rows, key=lambda row: int(row["number"]))
    risks = [row["risk"] for row in in_order]
    if plan.plan_id != plan_id or risks != [change.risk for change in plan.changes]:
        raise ConfigError(f"plan {plan_id} was altered since it was frozen: plan again")
    return FrozenPlan(plan, rows[0]["event_time"].astimezone(UTC))


def to_rows(plan: Plan, now: datetime, planned_by: str) -> Iterator[dict[str, Any]]:
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


def to_changes(rows_read: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
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
