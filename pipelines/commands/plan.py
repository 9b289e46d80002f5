"""The command plan: what the results ask for, as changes an operator may make."""

from datetime import UTC, datetime

import typer

from quotaflow.pipelines.commands import options, output, values

CHANGES_WAITING = 3


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("plan")(show_plan)


def show_plan(
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
    as_json: options.AsJson = False,
) -> None:
    """Show which configs should change, why, and how.

    Needs no JVM. Nothing is written to the cluster: applying a plan comes in a later version. Exit
    code 3 says that changes wait, 0 that none do. With --json one object per change; stderr says
    what was held back.

    Example: quotaflow plan
    """
    from quotaflow.pipelines.commands import planned  # noqa: PLC0415  imports pyarrow

    plan = planned.make(options.conf(conf, overrides), datetime.now(UTC))
    if as_json:
        output.lines(values.json_line(change) for change in planned.objects(plan))
    else:
        output.lines(planned.text(plan))
    for line in planned.not_planned(plan):
        output.note(line)
    if plan.changes:
        raise typer.Exit(CHANGES_WAITING)
