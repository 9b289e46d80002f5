"""The command notify: send a webhook what happened since the last run."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.monitoring import notifier
from quotaflow.pipelines.terminal import logs, output
from quotaflow.pipelines.terminal.layout import Layout

_NOTICE = ("event_time", "kind", "text", "cluster_id", "id", "details")
_DELIVERY = ("sent", "summarized", "refused", "pending", "problem")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be sent.")]


def notify(
    *,
    dry_run: DryRun = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Notify a webhook of alerts, waiting plans, failed changes and critical checks.

    Posts each as JSON to conf's alerts.webhook, at least once, with an Idempotency-Key; `text` is
    what Slack shows. Run it on a schedule, after run: a webhook that does not answer fails only
    this command, and the next run sends the rest. Exit code 1: something was refused, or waits.
    Needs no JVM.

    Example: quotaflow notify --dry-run
    """
    settings = conf.of_tables()
    now = datetime.now(UTC)
    if dry_run:
        waiting = map(notifier.body, notifier.pending(settings, now))
        if layout != Layout():
            output.write(waiting, _NOTICE, layout)
        else:
            output.lines(map(_line, waiting))
        return
    delivery = notifier.deliver(settings, now)
    for refusal in delivery.refused:
        logs.report(logs.warning(f"refused: {refusal}"))
    counts = {
        "sent": delivery.sent,
        "summarized": delivery.summarized,
        "refused": len(delivery.refused),
        "pending": delivery.pending,
    }
    if layout != Layout():
        output.write([counts | {"problem": delivery.problem}], _DELIVERY, layout)
    else:
        summary = f", {delivery.summarized} in one summary" if delivery.summarized else ""
        logs.report(f"{delivery.sent} sent{summary}")
    if delivery.problem is not None:
        output.error(f"{delivery.problem}; {delivery.pending} wait for the next run")
    if delivery.refused or delivery.problem is not None:
        raise typer.Exit(1)


def _line(shown: dict[str, str]) -> str:
    return f"{shown['event_time'][:19]}  {shown['kind']}  {shown['text']}"
