"""The command notify: tell a webhook what happened since it was told last."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.terminal import output, values

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be told.")]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("notify")(notify)


def notify(
    *,
    dry_run: DryRun = False,
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell a webhook of alerts, plans that wait, changes that failed and critical checks.

    Posts each as JSON to conf's alerts.webhook, at least once, with an Idempotency-Key; `text` is
    what Slack shows. What was told is kept beside the checkpoints. Run it on a schedule, after
    run: a webhook that is away costs only this command, and what was not told waits. Exit code 1:
    something was refused, or waits. Needs no JVM.

    Example: quotaflow notify --dry-run
    """
    settings = options.conf(conf, overrides)
    from quotaflow.pipelines.monitoring import notifier  # noqa: PLC0415  imports pyarrow

    now = datetime.now(UTC)
    if dry_run:
        for notice in notifier.pending(settings, now):
            shown = notifier.body(notice)
            output.lines([values.json_line(shown) if as_json else _line(shown)])
        return
    told = notifier.deliver(settings, now)
    for refusal in told.refused:
        output.note(f"refused: {refusal}")
    counts = {
        "told": told.sent,
        "summed_up": told.summarized,
        "refused": len(told.refused),
        "waiting": told.waiting,
    }
    if as_json:
        output.lines([values.json_line(counts | {"problem": told.problem})])
    else:
        summed_up = f", {told.summarized} in one summary" if told.summarized else ""
        output.lines([f"{told.sent} told{summed_up}"])
    if told.problem is not None:
        output.error(f"{told.problem}; {told.waiting} wait for the next time")
    if told.refused or told.problem is not None:
        raise typer.Exit(1)


def _line(shown: dict[str, str]) -> str:
    return f"{shown['event_time'][:19]}  {shown['kind']}  {shown['text']}"
