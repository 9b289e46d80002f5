"""The commands apply and restore: write a plan, and restore what was written."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines import interrupts
from quotaflow.pipelines.commands import options, plan
from quotaflow.pipelines.errors import ConfigError, FeedbackError
from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.planning import plan_text
from quotaflow.pipelines.feedback.runs import (
    apply_run,
    context,
    frozen_plans,
    restore_run,
)
from quotaflow.pipelines.terminal import output
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from quotaflow.pipelines.feedback.ledger.outcome import Outcome
    from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan
    from quotaflow.pipelines.feedback.runs.context import Context


PlanId = Annotated[
    str | None,
    typer.Argument(
        metavar="[PLAN_ID]", help="A plan saved by `quotaflow plan --save`; without it, a new plan."
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Write the changes; without --yes, they are only shown.")
]
All = Annotated[
    bool,
    typer.Option("--all", help="Restore all: also what has not expired."),
]
Panic = Annotated[
    bool,
    typer.Option("--panic", help="Restore all by the cluster alone: no lock, no table."),
]
AllDeployments = Annotated[
    bool,
    typer.Option("--all-deployments", help="With --panic: also what other deployments lease."),
]


def apply(
    plan_id: PlanId = None,
    *,
    yes: Yes = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Write the changes of a plan to the cluster: each is recorded, read back and has a lease.

    Without --yes, brokers only validate the changes (validateOnly), and nothing is written. A
    PLAN_ID applies exactly the saved plan, or nothing if the cluster has changed since. Every step
    is a row of config_changes. A file STOP beside the tables stops it before the next write, and so
    does Ctrl-C. With --json, one object per change, with its outcome.

    Exit code 0: all is as planned; 1: something was refused, had changed or did not answer; 3:
    changes wait for --yes. Needs no JVM where the tables are in a folder. The login needs
    ALTER_CONFIGS and DESCRIBE_CONFIGS on the cluster and, for lists of throttled replicas, on
    topics.

    Example: quotaflow apply

    Example: quotaflow apply 3f1c5e0a9b72d4e81c06 --yes
    """
    settings = conf.of_tables()
    opened = context.from_conf(settings)
    frozen_plan = None if plan_id is None else frozen_plans.load(opened.tables, plan_id)
    if not yes:
        made, outcomes = apply_run.dry_run(opened, frozen_plan, datetime.now(UTC))
        _show(made, outcomes, layout=layout)
        if made.changes:
            output.note("Nothing was written: --yes writes it.")
            raise typer.Exit(plan.CHANGES_WAITING)
        return
    with interrupts.noted() as is_over:
        made, outcomes = apply_run.apply_plan(
            opened, frozen_plan, output.note, interrupts.stop_reason(is_over)
        )
        _show(made, outcomes, layout=layout)
        _exit(_recorded(apply_run.failure_summary(outcomes)), is_over())


def restore(
    *,
    everything: All = False,
    panic: Panic = False,
    all_deployments: AllDeployments = False,
    yes: Yes = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Restore configs whose lease is over to the values from before quotaflow wrote them.

    A later change of another login is never overwritten; it is reported. A client-metrics resource
    whose removal could crash a live client is blocked, and the command that removes it by hand is
    printed. Without --yes, nothing is written. Exit codes and --json are those of apply; exit code
    1 also if something is blocked or refused. Needs no JVM where the tables are in a folder. Run it
    on a schedule: without it no lease ends.

    The guards of a plan apply here too. A value out of bounds, an excluded principal or the default
    of all users is refused, and the command that restores it by hand is printed. A restore may
    change any number of entities at once.

    Rows of config_changes and leases of the topic count if the signing key verifies them. Others
    are refused by name, and the exit code is 1. While another process writes the tables,
    the leases of the topic say what is due. --panic needs the cluster and the key alone: it ignores
    the warehouse, its locks, the stop file and the clock.

    Example: quotaflow restore --yes

    Example: quotaflow restore --all --yes

    Example: quotaflow restore --panic --yes
    """
    opened = context.from_conf(conf.of_tables())
    if panic:
        _panic(opened, yes=yes, layout=layout, all_deployments=all_deployments)
    elif all_deployments:
        raise ConfigError("--all-deployments needs --panic")
    elif yes:
        _restore(opened, everything=everything, layout=layout)
    else:
        _preview(opened, everything=everything, layout=layout)


def _preview(opened: "Context", *, everything: bool, layout: Layout) -> None:
    preview = restore_run.preview(opened, datetime.now(UTC), everything=everything)
    _show_preview(preview, layout=layout)


def _restore(opened: "Context", *, everything: bool, layout: Layout) -> None:
    with interrupts.noted() as is_over:
        restore_plan, outcomes = restore_run.restore_configs(
            opened, output.note, interrupts.stop_reason(is_over), everything=everything
        )
        _restored(restore_plan, outcomes, layout=layout)
        problems = [_recorded(apply_run.failure_summary(outcomes)), _missed(restore_plan)]
        _exit("; ".join(filter(None, problems)) or None, is_over())


def _panic(opened: "Context", *, yes: bool, layout: Layout, all_deployments: bool) -> None:
    if not yes:
        previews = restore_run.preview_panic(opened, all_deployments=all_deployments)
        for each in previews:
            _restored(each.plan, [], layout=layout)
        if any(each.plan.changes for each in previews):
            output.note("Nothing was written: --yes restores it.")
            raise typer.Exit(plan.CHANGES_WAITING)
        return
    with interrupts.noted() as is_over:
        done = restore_run.restore_panic(
            opened, interrupts.stop_reason(is_over), all_deployments=all_deployments
        )
        for each in done:
            _restored(each.plan, list(each.outcomes), layout=layout)
        problems = [
            problem
            for each in done
            for problem in (apply_run.failure_summary(each.outcomes), _missed(each.plan))
        ]
        _exit("; ".join(filter(None, problems)) or None, is_over())


def _show_preview(preview: "RestorePlan", *, layout: Layout) -> None:
    _restored(preview, [], layout=layout)
    missed = _missed(preview)
    if missed is not None:
        raise FeedbackError(f"{missed}: nothing was written")
    if preview.changes or preview.yielded:
        output.note("Nothing was written: --yes restores it.")
        raise typer.Exit(plan.CHANGES_WAITING)


def _show(made: "Plan", outcomes: "list[Outcome]", *, layout: Layout) -> None:
    if layout != Layout():
        objects = plan_text.outcome_objects(outcomes)
        output.write(objects, plan_text.OUTCOME_COLUMNS, layout)
    else:
        output.lines(plan_text.plan_lines(made))
        output.lines(plan_text.outcome_lines(outcomes))
    for line in plan_text.blocked_lines(made):
        output.note(line)


def _restored(restore_plan: "RestorePlan", outcomes: "list[Outcome]", *, layout: Layout) -> None:
    if layout != Layout() and outcomes:
        objects = plan_text.outcome_objects(outcomes)
        output.write(objects, plan_text.OUTCOME_COLUMNS, layout)
    elif layout != Layout():
        due = plan_text.plan_objects(Plan(restore_plan.changes, ()))
        output.write(due, plan_text.PLAN_COLUMNS, layout)
    else:
        output.lines(plan_text.restore_lines(restore_plan))
        output.lines(plan_text.outcome_lines(outcomes))
    for line in plan_text.left_alone_lines(restore_plan):
        output.note(line)


def _missed(restore_plan: "RestorePlan") -> str | None:
    """What should be restored and cannot be now; None if all of it can."""
    problems = []
    if restore_plan.unanswered:
        problems.append(
            f"{_configs(len(restore_plan.unanswered))} did not answer, and must be restored"
        )
    if restore_plan.blocked:
        configs = _configs(len(restore_plan.blocked))
        problems.append(
            f"{configs} must be restored, and are blocked: a live client could be harmed"
        )
    if restore_plan.refused:
        problems.append(
            f"{_configs(len(restore_plan.refused))} refused: a guard does not allow these values"
        )
    if restore_plan.distrusted:
        problems.append(
            f"{counted(len(restore_plan.distrusted), 'row or lease', 'rows and leases')} refused: "
            "not verified"
        )
    return "; ".join(problems) or None


def _configs(count: int) -> str:
    return counted(count, "config")


def _recorded(problem: str | None) -> str | None:
    return problem and f"{problem}: the rows of config_changes have the reasons"


def _exit(problem: str | None, is_interrupted: bool) -> None:
    if is_interrupted:
        raise typer.Exit(interrupts.EXIT_CODE)
    if problem is not None:
        raise FeedbackError(problem)
