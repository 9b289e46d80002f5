"""The command notify: send receivers what happened since the last run."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.monitoring import formats, notifier
from quotaflow.pipelines.monitoring.notifications import Notification
from quotaflow.pipelines.monitoring.notifier import Delivery
from quotaflow.pipelines.terminal import logs, output
from quotaflow.pipelines.terminal.layout import Layout

_NOTICE = (
    *("event_time", "kind", "text", "severity", "owner", "receivers", "cluster_id", "id"),
    *("subject_id", "labels", "details"),
)
_DELIVERY = ("receiver", "sent", "summarized", "refused", "pending", "problem")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be sent.")]


def notify(
    *,
    dry_run: DryRun = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Notify receivers of alerts, incidents, waiting plans, failed changes and critical checks.

    Sends each to conf's alerts.receivers, at least once, in the format of each. Run it on a
    schedule, after run: a receiver that does not answer fails only this command, and the next run
    sends the rest. Exit code 1: something was refused, or waits. Needs no JVM.

    Example: quotaflow notify --dry-run
    """
    settings = conf.of_advice()
    now = datetime.now(UTC)
    if dry_run:
        waiting = [_shown(*each) for each in notifier.pending(settings, now)]
        if layout != Layout():
            output.write(waiting, _NOTICE, layout)
        else:
            output.lines(map(_line, waiting))
        return
    deliveries = notifier.deliver(settings, now)
    for each in deliveries:
        for refusal in each.refused:
            logs.report(logs.warning(f"{each.receiver} refused: {refusal}"))
    if layout != Layout():
        output.write([_counts(each) for each in deliveries], _DELIVERY, layout)
    else:
        for each in deliveries:
            logs.report(_result(each))
    problems = [each for each in deliveries if each.problem is not None]
    for each in problems:
        output.error(f"{each.problem}; {each.pending} wait for the next run")
    if problems or any(each.refused for each in deliveries):
        raise typer.Exit(1)


def _shown(notice: Notification, receivers: list[str]) -> dict[str, Any]:
    return {**formats.webhook(notice), "receivers": receivers}


def _counts(delivery: Delivery) -> dict[str, Any]:
    return {
        "receiver": delivery.receiver,
        "sent": delivery.sent,
        "summarized": delivery.summarized,
        "refused": len(delivery.refused),
        "pending": delivery.pending,
        "problem": delivery.problem,
    }


def _result(delivery: Delivery) -> str:
    summary = f", {delivery.summarized} in one summary" if delivery.summarized else ""
    return f"{delivery.receiver}: {delivery.sent} sent{summary}"


def _line(shown: dict[str, Any]) -> str:
    receivers = ", ".join(shown["receivers"])
    return f"{shown['event_time'][:19]}  {shown['kind']}  {shown['text']}  -> {receivers}"
