"""The command troubleshoot: request metrics from one client for a while (KIP-714)."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quotaflow.pipelines import interrupts
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.facts.pushes import COLUMNS, CapturedPushes
from quotaflow.pipelines.feedback.runs import subscription_request
from quotaflow.pipelines.kafka import tail, temporary_subscription
from quotaflow.pipelines.terminal import output, times, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse.known_brokers import known_brokers
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf
    from quotaflow.pipelines.feedback.runs.subscription_request import PreparedSubscription

INTERVAL_S, FOR_S = range(1, 3_601), range(10, 86_401)

Client = Annotated[
    str,
    typer.Argument(metavar="CLIENT", help="A client instance id, a client id, or a principal."),
]
Metrics = Annotated[
    str, typer.Option("--metrics", metavar="PREFIX[,PREFIX]", help="Metrics to request; * is all.")
]
Interval = Annotated[
    str, typer.Option("--interval", metavar="10s", help="How often the client pushes.")
]
Period = Annotated[
    str, typer.Option("--for", metavar="30m", help="How long the subscription lasts.")
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Create the subscription; without --yes, it is only shown.")
]


def troubleshoot(
    client: Client,
    metrics: Metrics,
    interval: Interval = "10s",
    period: Period = "30m",
    *,
    yes: Yes = False,
    conf: options.ConfOptions,
    layout: options.FormLayout,
) -> None:
    """Request metrics from one client for a while, and show what it pushes.

    Creates a client-metrics resource that matches only the live instances of CLIENT, follows the
    receiver's topic and the request log, and deletes the resource at the end, at Ctrl-C and after
    an error. A subscription that could harm the client is refused. With --json and --csv, points
    have the columns of client_metrics. Needs no JVM; the login needs DESCRIBE_CONFIGS and
    ALTER_CONFIGS on the cluster.

    Example: quotaflow troubleshoot orders --metrics org.apache.kafka.consumer. --for 10m --yes
    """
    prefixes = tuple(dict.fromkeys(part.strip() for part in metrics.split(",")))
    interval_s = _seconds("--interval", interval, INTERVAL_S, "every push costs client and broker")
    for_s = _seconds("--for", period, FOR_S, "for longer, add a subscription rule to conf")
    settings = conf.of_tables()
    now = datetime.now(UTC)
    until = now + timedelta(seconds=for_s)
    request = subscription_request.MetricsRequest(client, prefixes, interval_s * 1_000, now, until)
    prepared = subscription_request.prepare(
        settings.kafka, settings.ingest, open_reader(settings), request
    )
    for text in prepared.notes:
        output.note(text)
    if yes:
        _follow(settings, prepared, for_s, layout)
    elif layout.is_for_programs:
        row = subscription_request.as_object(prepared)
        output.write([row], [*row], layout)
    else:
        output.lines(subscription_request.text(prepared))


def _seconds(option: str, text: str, bounds: range, reason: str) -> int:
    duration_s = 0 if text.strip().endswith("ms") else times.seconds(text)
    if duration_s not in bounds:
        raise ConfigError(f"{option} {text} must be {bounds[0]} to {bounds[-1]} s: {reason}")
    return duration_s


def _follow(settings: "Conf", prepared: "PreparedSubscription", for_s: int, layout: Layout) -> None:
    properties, made = settings.kafka.login, prepared.lease
    cluster_id = prepared.cluster.cluster_id
    pushes = CapturedPushes(
        cluster_id=cluster_id,
        client_instance_ids=frozenset(made.client_instance_ids),
        metrics=made.metrics,
        ingest=settings.ingest,
        bounds=settings.payloads,
        report=output.note,
        brokers=known_brokers(open_reader(settings), cluster_id),
    )
    partitions = {topic.name: topic.partitions for topic in prepared.cluster.topics.values()}
    with interrupts.noted() as is_over:
        with (
            tail.follow(properties, partitions) as poll,
            temporary_subscription.open_subscription(
                properties, made, prepared.delete_command, output.note
            ),
        ):
            output.note(f"requested by client-metrics {made.name}: Ctrl-C deletes it")
            if layout.as_csv:
                output.lines(output.program_lines([], COLUMNS, layout))
            for record in _until(poll, for_s, is_over):
                rows = pushes.rows(record)
                texts: Iterable[str] = map(line, rows)
                if layout.is_for_programs:
                    texts = output.program_lines(rows, COLUMNS, layout, has_head=False)
                output.lines_while_read(texts)
        came = (
            f"{counted(pushes.pushes, 'push', 'pushes')} and {counted(pushes.points, 'point')} came"
        )
        output.note(f"{came}; client-metrics {made.name} is deleted")
    if is_over():
        raise typer.Exit(interrupts.EXIT_CODE)


def _until(poll: Callable[[], list[Any]], for_s: int, is_over: Callable[[], bool]) -> Iterator[Any]:
    deadline_s = time.monotonic() + for_s
    while time.monotonic() < deadline_s and not is_over():
        yield from poll()


def line(row: dict[str, Any]) -> str:
    """A row of client_metrics as one line of text: time, metric, value and labels."""
    value = row["value"] if row["value"] is not None else row["histogram_sum"]
    shown = f"{(row['event_time'] or '')[11:23]}  {row['metric']} = {values.text(value)}"
    shown += f" {row['unit']}" if row["unit"] else ""
    if row["histogram_count"] is not None:
        shown += f" in {row['histogram_count']}"
    labels = " ".join(f"{key}={value}" for key, value in sorted((row["attributes"] or {}).items()))
    shown += "" if row["accepted"] else "  (rejected)"
    return values.visible(f"{shown}  {labels}  {row['client_instance_id']}")
