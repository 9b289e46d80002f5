"""The command capture: switch request logs on for a while, count lines, restore (KIP-412)."""

import difflib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from kafka.protocol.api_key import ApiKey

from quotaflow.pipelines import interrupts
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError, FeedbackError, JobError, KafkaError
from quotaflow.pipelines.facts import line_counts
from quotaflow.pipelines.facts.line_counts import LineCounts
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import DONE
from quotaflow.pipelines.feedback.planning import plan_text
from quotaflow.pipelines.feedback.runs import apply_run, context, request_logger
from quotaflow.pipelines.kafka import admin, tail
from quotaflow.pipelines.monitoring import capture_preview, log_volume
from quotaflow.pipelines.spark import spark_errors
from quotaflow.pipelines.terminal import output, times
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse.known_brokers import known_brokers
from quotaflow.pipelines.warehouse.reader import Reader

if TYPE_CHECKING:
    from quotaflow.pipelines.config import Conf
    from quotaflow.pipelines.feedback.runs.context import Context
    from quotaflow.pipelines.feedback.runs.request_logger import CaptureRequest, Switch

FOR_S = range(10, 86_401)
_TICK_S = 5.0
_NOT_RESTORED: tuple[type[Exception], ...] = (
    ConfigError,
    FeedbackError,
    JobError,
    KafkaError,
    OSError,
)

Period = Annotated[str, typer.Option("--for", metavar="10m", help="How long the logs are on.")]
Brokers = Annotated[
    list[int] | None, typer.Option("--broker", metavar="ID", help="Only this broker; else all.")
]
Apis = Annotated[
    str | None,
    typer.Option("--api", metavar="API[,API]", help="Count only these APIs; brokers log all."),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Switch the logs on; without --yes, the effect is only shown.")
]


def capture(
    period: Period = "10m",
    broker: Brokers = None,
    api: Apis = None,
    *,
    yes: Yes = False,
    conf: options.ConfOptions,
    layout: options.FormLayout,
) -> None:
    """Switch brokers' request logs on for a while, and show the lines per second.

    Sets the logger kafka.request.logger of each broker to DEBUG, shows lines per second as they
    reach the topic, and restores the level at the end, at Ctrl-C and after an error. It is a lease
    in config_changes: after kill -9, `quotaflow restore --yes` restores it, and a broker that
    restarts forgets it. A broker that logs already stays as it is, and so does one whose level
    Kafka does not let anyone set, such as OFF: it could not be restored. Needs no JVM where the
    tables are in a folder; the login needs DESCRIBE_CONFIGS and ALTER_CONFIGS on the cluster, READ
    on the topic.

    Example: quotaflow capture --for 10m --broker 1 --yes
    """
    for_s = times.seconds(period)
    if for_s not in FOR_S:
        raise ConfigError(
            f"--for {period} must be {FOR_S[0]} to {FOR_S[-1]} s: for longer, set the brokers' own "
            "log4j2 configuration"
        )
    apis = _apis(api)
    settings = conf.of_tables()
    opened = context.from_conf(settings)
    switch = request_logger.read_switch(opened, broker or [], for_s, datetime.now(UTC))
    volume = capture_preview.expected(opened.tables, settings.warehouse, switch.request.cluster_id)
    if layout.is_for_programs and not yes:
        rows = capture_preview.objects(opened.plans.connection, switch, volume)
        output.write(rows, capture_preview.COLUMNS, layout)
    elif not yes:
        output.lines(capture_preview.text(opened.plans.connection, switch, volume))
        output.note(
            "Nothing was written: --yes switches it on, shows lines per second, and restores."
        )
    else:
        _capture(settings, opened, switch.request, apis, layout)


def _apis(text: str | None) -> frozenset[str]:
    """API names as the log has them. Raises ConfigError with the nearest one Kafka has."""
    if text is None:
        return frozenset()
    kafka_names = {_as_logged(key.name) for key in ApiKey}
    names = [_as_logged(name.strip()) for name in text.split(",")]
    for name in names:
        if name not in kafka_names:
            near = difflib.get_close_matches(name, sorted(kafka_names), n=1, cutoff=0.0)
            raise ConfigError(f"--api {name} is no API of Kafka (did you mean {near[0]}?)")
    return frozenset(names)


def _as_logged(name: str) -> str:
    """An API as the request log names it: LIST_OFFSETS for ListOffsets, list_offsets too."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _capture(
    settings: "Conf",
    opened: "Context",
    request: "CaptureRequest",
    apis: frozenset[str],
    layout: Layout,
) -> None:
    topic, partitions = _topic(settings)
    arrivals = _line_counts(settings, opened.tables, request, apis)
    switches: list[Switch] = []
    with interrupts.noted() as is_over, tail.follow(settings.kafka.login, partitions) as poll:
        try:
            outcomes = request_logger.switched_on(
                opened,
                request,
                output.note,
                interrupts.stop_reason(is_over),
                on_start=switches.append,
            )
            unchanged = capture_preview.unchanged_lines(opened.plans.connection, switches[0])
            for each in (*plan_text.outcome_lines(outcomes), *unchanged):
                output.note(each)
            is_none_on = all(map(request_logger.is_left, switches[0].levels.values()))
            is_on = all(outcome.step == DONE for outcome in outcomes) and not is_none_on
            if is_on:
                output.note(
                    f"following {topic} for {request.for_s} s: Ctrl-C restores the levels; a "
                    "broker that restarts forgets them"
                )
                duration_s = _follow(arrivals, poll, request.for_s, is_over, layout)
                _keep_volume(settings, request.cluster_id, arrivals, duration_s)
        finally:
            for switch in switches:
                keys = [change.desired.key for change in switch.plan.changes]
                if keys:
                    _restore(opened, switch, keys)
    if is_over():
        raise typer.Exit(interrupts.EXIT_CODE)
    if not is_on:
        raise FeedbackError(
            "not every request log was switched on: the lines above have the reasons"
        )


def _line_counts(
    settings: "Conf", tables: Reader, request: "CaptureRequest", apis: frozenset[str]
) -> "LineCounts":
    """Counts of lines, which are read as ingest reads them."""
    brokers = known_brokers(tables, request.cluster_id)
    options = replace(settings.ingest.line_options, brokers=brokers)
    return LineCounts(options, frozenset(request.broker_ids), apis)


def _keep_volume(
    settings: "Conf", cluster_id: str, arrivals: "LineCounts", duration_s: float
) -> None:
    """Keep what was measured, for doctor; not if only some APIs were counted."""
    if arrivals.apis or not arrivals.lines.total():
        return
    volume = log_volume.LogVolume(
        cluster_id,
        datetime.now(UTC),
        duration_s,
        {str(broker): n for broker, n in arrivals.lines.items()},
        {str(broker): size for broker, size in arrivals.bytes.items()},
    )
    try:
        log_volume.save(settings.warehouse, volume)
    except ConfigError as error:
        output.note(f"doctor will not know what was measured: {error}")


def _topic(settings: "Conf") -> tuple[str, dict[str, int]]:
    topic = settings.ingest.request_log_topic
    if topic is None:
        raise ConfigError(
            "ingest.request_log_topic is null: set it to the topic that lines are sent to"
        )
    topics = admin.describe(settings.kafka.login, [topic], settings.kafka.cluster_id).topics
    if topic not in topics:
        raise KafkaError(f"topic {topic} does not exist (or hidden by ACL): create it first")
    return topic, {topic: topics[topic].partitions}


def _follow(
    arrivals: "LineCounts",
    poll: Callable[[], list[Any]],
    for_s: int,
    is_over: Callable[[], bool],
    layout: Layout,
) -> float:
    """Count and show lines until the time is over; returns how long that took, in seconds."""
    names = ("time", *line_counts.COLUMNS)
    if layout.as_csv:
        output.lines(output.program_lines([], names, layout))
    started = reported = time.monotonic()
    while (now := time.monotonic()) < started + for_s and not is_over():
        if records := poll():
            arrivals.add(records)
        if now - reported >= _TICK_S:
            rates = list(arrivals.rates(now - reported))
            reported, at = now, f"{datetime.now(UTC):%H:%M:%S}"
            rows = [{"time": at, **rate} for rate in rates]
            texts: Iterable[str] = [f"{at}  {line_counts.line(rates)}"]
            if layout.is_for_programs:
                texts = output.program_lines(rows, names, layout, has_head=False)
            output.lines_while_read(texts)
    duration_s = max(time.monotonic() - started, 1.0)
    for text in arrivals.summary(duration_s):
        output.note(text)
    return duration_s


def _restore(opened: "Context", switch: "Switch", keys: list[Any]) -> None:
    try:
        restore_plan, outcomes = request_logger.restore_levels(opened, keys, output.note)
    except _NOT_RESTORED + spark_errors.bridge_errors():
        _note_commands(opened, switch, keys)
        raise
    for each in (*plan_text.outcome_lines(outcomes), *plan_text.left_alone_lines(restore_plan)):
        output.note(each)
    settled = {o.change.desired.key for o in outcomes}
    settled |= {each.key for each in restore_plan.yielded}
    # A broker that did not say whether it was switched on has an open record.
    ledger = journal.read_ledger(opened.newest_tables())
    is_open = {record.key for record in ledger.open_records} & {*keys} - settled
    if (
        apply_run.failure_summary(outcomes)
        or restore_plan.unanswered
        or restore_plan.refused
        or is_open
    ):
        _note_commands(opened, switch, keys)
        raise FeedbackError(
            "not every level was restored: `quotaflow restore --all --yes` restores them"
        )


def _note_commands(opened: "Context", switch: "Switch", keys: list[Any]) -> None:
    for entity, _ in keys:
        line = request_logger.off_command(opened.plans.connection, switch, int(entity.entity_name))
        output.note(f"restore it: {line}")
