"""Plans frozen in the table plans: stored, and loaded by id."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning import plan_rows
from quotaflow.pipelines.feedback.runs.context import Context
from quotaflow.pipelines.feedback.writing.exclusive_section import (
    RowAppender,
    next_record_time,
    whoami,
)
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.tables import Tables
from quotaflow.schemas.tables.control import PLANS

_NEWEST = "SELECT plan_id FROM plans GROUP BY plan_id ORDER BY max(event_time) DESC LIMIT 20"
_FROZEN_AT = "SELECT max(event_time) AS at FROM plans WHERE plan_id = {}"
_NEWEST_FREEZE = """
    SELECT *
    FROM plans
    WHERE plan_id = {0} AND event_time = (SELECT max(event_time) FROM plans WHERE plan_id = {0})
"""


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """A plan as it was frozen, and the time of the freeze."""

    plan: Plan
    frozen_at: datetime


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
    tables: Tables,
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
        rows.append(PLANS, list(plan_rows.rows(plan, after_all, whoami())))


def done_since(ledger: Ledger, plan: Plan, at: datetime) -> set[str]:
    """The ids of changes that were written since that freeze: for these the plan is used up."""
    times = {c.change_id: ledger.done_at.get((plan.plan_id, c.change_id)) for c in plan.changes}
    return {change_id for change_id, done in times.items() if done is not None and done >= at}


def load(tables: Tables, plan_id: str) -> FrozenPlan:
    """The newest freeze of a plan. Raises ConfigError if there is none of this id."""
    is_made = tables.is_made(PLANS.name)
    rows = tables.rows(_NEWEST_FREEZE.format(literal(plan_id))) if is_made else []
    if not rows:
        plan_ids = [row["plan_id"] for row in tables.rows(_NEWEST)] if is_made else []
        near = nearest(plan_id, plan_ids) if plan_ids else ""
        raise ConfigError(f"no plan {plan_id} was frozen{near}: quotaflow plan --save does")
    plan = Plan(plan_rows.changes(rows), ())
    in_order = sorted(rows, key=lambda row: int(row["number"]))
    risks = [row["risk"] for row in in_order]
    if plan.plan_id != plan_id or risks != [change.risk for change in plan.changes]:
        raise ConfigError(f"plan {plan_id} was altered since it was frozen: plan again")
    return FrozenPlan(plan, rows[0]["event_time"].astimezone(UTC))
