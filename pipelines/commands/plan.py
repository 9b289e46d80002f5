"""The command plan: the config changes that results propose."""

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.feedback.planning import jikkou, plan_text, planning, strimzi, terraform
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.terminal import output, progress
from quotaflow.pipelines.terminal.layout import Layout

if TYPE_CHECKING:
    from quotaflow.pipelines.feedback.configs.change import Plan
    from quotaflow.pipelines.feedback.runs.context import Context

CHANGES_WAITING = 3

Save = Annotated[
    bool, typer.Option("--save", help="Save it in the table plans; apply takes its id.")
]


class Format(StrEnum):
    """What a plan is printed as, beside its own text."""

    KAFKA_CONFIGS = "kafka-configs"
    STRIMZI = "strimzi"
    JIKKOU = "jikkou"
    TERRAFORM = "terraform"
    JSON = "json"


As = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Command lines of kafka-configs, patches of Strimzi's KafkaUser, Jikkou's YAML, "
        "Terraform's kafka_quota, or JSON.",
    ),
]
ExitZero = Annotated[
    bool, typer.Option("--exit-zero", help="Exit code 0 even if changes wait, for schedulers.")
]


def plan(
    *,
    save: Save = False,
    chosen: As = None,
    exit_zero: ExitZero = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Show which configs should change, why, and how.

    Writes nothing to the cluster: `quotaflow apply` does that. Exit code 3: changes wait; 0: none
    do. With --json and --csv, one row per change, and then one per blocked change with its
    blocked_reason; stderr has these too. Needs no JVM where the tables are in a folder.

    Example: quotaflow plan

    Example: quotaflow plan --save --exit-zero
    """
    if chosen is not None and layout != Layout():
        raise ConfigError(f"{chosen} is a format of its own: leave out --json, --csv and the like")
    if chosen is Format.JSON:
        layout = Layout(as_json=True)
    opened = context.from_conf(conf.of_tables())
    now = datetime.now(UTC)
    with progress.shown("computing what should change"):
        plan = planning.make(opened.plans, opened.tables, now)
    if plan.changes and save:
        _save(opened, plan, now)
    if layout != Layout():
        output.write(plan_text.plan_objects(plan), plan_text.PLAN_COLUMNS, layout)
    elif chosen is not None:
        output.lines(_rendered(plan, chosen, opened))
    else:
        output.lines(plan_text.plan_lines(plan))
        output.lines(plan.fragments)
    for line in plan_text.blocked_lines(plan):
        output.note(line)
    if plan.changes:
        output.note(plan_text.pending_line(plan) + " " + _next(plan, save=save))
        raise typer.Exit(0 if exit_zero else CHANGES_WAITING)


def _rendered(plan: "Plan", chosen: Format, opened: "Context") -> Iterable[str]:
    if chosen is Format.KAFKA_CONFIGS:
        return dict.fromkeys(change.command for change in plan.changes if change.command)
    if chosen is Format.STRIMZI:
        of_users = [change for change in plan.changes if strimzi.is_concerned(change)]
        return [*plan.fragments, *strimzi.fragments(of_users, opened.plans.plan.strimzi_api)]
    if chosen is Format.TERRAFORM:
        return terraform.blocks(plan)
    return jikkou.documents(plan)


def _save(opened: "Context", plan: "Plan", now: datetime) -> None:
    from quotaflow.pipelines.feedback.runs import frozen_plans  # noqa: PLC0415  imports kafka

    frozen_plans.save(opened, plan, now, output.note)


def _next(plan: "Plan", *, save: bool) -> str:
    if save:
        return f"Nothing was written: `quotaflow apply {plan.plan_id} --yes` writes this plan."
    return "Nothing was written: `quotaflow apply` lets brokers validate the changes."
