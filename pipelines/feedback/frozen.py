"""Plans frozen in the table plans: kept, and found again by id."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.pipelines import session
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback import plan_rows, planning
from quotaflow.pipelines.feedback.change import Plan
from quotaflow.pipelines.feedback.turn import Rows, whoami
from quotaflow.pipelines.reader import nearest
from quotaflow.pipelines.sql_text import literal
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas.control_tables import PLANS

_NEWEST = "SELECT plan_id FROM plans GROUP BY plan_id ORDER BY max(event_time) DESC LIMIT 20"


@dataclass(frozen=True, slots=True)
class Frozen:
    """A plan as it was frozen, and when."""

    plan: Plan
    at: datetime


def save(conf: Conf, plan: Plan, now: datetime, report: Callable[[str], None]) -> None:
    """Freeze a plan; one that was frozen before stays as it is."""
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        spark = session.get(session.short_lived(conf.spark), report)
        warehouse.ensure(spark, [PLANS])
        keep(conf, Rows(spark, warehouse), plan, now)


def keep(conf: Conf, rows: Rows, plan: Plan, now: datetime) -> None:
    """The same within a turn."""
    if not planning.rows(conf, _select(plan.plan_id)):
        rows.append(PLANS, list(plan_rows.rows(plan, now, whoami())))


def load(conf: Conf, plan_id: str) -> Frozen:
    """A plan as it was frozen. Raises ConfigError where there is none of this id."""
    is_made = planning.is_made(conf, PLANS.name)
    rows = planning.rows(conf, _select(plan_id)) if is_made else []
    if not rows:
        known = [row["plan_id"] for row in planning.rows(conf, _NEWEST)] if is_made else []
        near = nearest(plan_id, known) if known else ""
        raise ConfigError(f"no plan {plan_id} was frozen{near}: quotaflow plan --save does")
    plan = Plan(plan_rows.changes(rows), ())
    if plan.plan_id != plan_id:
        raise ConfigError(f"plan {plan_id} was altered since it was frozen: plan anew")
    return Frozen(plan, max(row["event_time"] for row in rows).astimezone(UTC))


def _select(plan_id: str) -> str:
    return f"SELECT * FROM plans WHERE plan_id = {literal(plan_id)}"
