"""The command why: what is wrong with a client, group, topic or address, and why."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.terminal import output, progress, texts, times, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse import lean_arrow
from quotaflow.udfs.counted import counted, noun

if TYPE_CHECKING:
    from quotaflow.pipelines.areas.why import AreaAnswer, WhyAnswer
    from quotaflow.pipelines.config import Conf

COLUMNS = (
    "name",
    "cluster_id",
    "start",
    "end",
    "area",
    "state",
    "code",
    "severity",
    "principal",
    "client_id",
    "topic",
    "broker_id",
    "event_time",
    "finding",
    "next_step",
    "evidence_table",
    "evidence",
)
"""Columns of every row with --json and --csv."""

_MOST = 20
_OF_EVIDENCE = ("principal", "client_id", "topic", "broker_id", "event_time")

Name = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="A principal, client id (app-* for several), group, topic, address, or broker-1.",
    ),
]
At = Annotated[
    str | None,
    typer.Option("--at", help=f"End: {times.FORMS}; else the newest window."),
]
Lookback = Annotated[str, typer.Option("--for", help="How far back from the end: 30s, 5m, 1h.")]


All = Annotated[
    bool, typer.Option("--all", help="Show what every area found, not only the verdict.")
]


def why(
    name: Name = None,
    at: At = None,
    lookback: Lookback = "5m",
    *,
    show_all: All = False,
    conf: options.ConfOptions,
    layout: Layout,
) -> None:
    """Show what is wrong with a client, group, topic or broker, why, and what to do.

    Prints the verdict: since when, what requests wait for, the causes with the part that each
    explains, and a next step. With --all, what every area found: quotas, producer ids, racks, fetch
    limits, groups, read problems, latency, telemetry, replication, changes and versions. Without a
    name it lists what is wrong: open incidents first. Needs no JVM where the tables are in a
    folder. Quotas are those of the last `quotaflow snapshot`; the cause of a throttle is inferred:
    a broker does not log it. If the tables have several clusters, kafka.cluster_id chooses one.
    With --json, one object per finding: state is problem, fact, nothing (the tables were asked) or
    unknown (they could not be asked).

    Example: quotaflow why dave --at 10m
    """
    settings = conf.of_advice()
    lean_arrow.load(settings.warehouse)
    if not name:
        _incidents(settings, layout)
        return
    until = times.since(at, datetime.now(UTC), "--at") if at else None
    is_brief = layout == Layout() and not show_all
    # A broker can be named in two words.
    answered = _answered(settings, " ".join(name), until, lookback, is_brief=is_brief)
    for damage in answered.damages:
        output.note(damage)
    if until and answered.end < until:
        output.note(_earlier(answered, until))
    if layout != Layout():
        output.write(rows(answered), COLUMNS, layout)
        return
    screen = _screen(answered) if show_all else answered.verdict.lines(answered.subject.name)
    output.lines(map(values.visible, screen))


def _answered(
    settings: "Conf", name: str, until: datetime | None, lookback: str, *, is_brief: bool
) -> "WhyAnswer":
    from quotaflow.pipelines.areas.about import Period  # noqa: PLC0415  imports pyarrow
    from quotaflow.pipelines.areas.why import why as ask  # noqa: PLC0415
    from quotaflow.pipelines.warehouse.readers import open_reader  # noqa: PLC0415

    period = Period(until, timedelta(seconds=times.seconds(lookback)))
    cluster_id = settings.kafka.cluster_id
    with progress.shown("asking the tables"):
        return ask(open_reader(settings), name, period, cluster_id, settings, is_brief=is_brief)


def _earlier(answered: "WhyAnswer", until: datetime) -> str:
    """That the data end before the time that was asked for."""
    end = texts.moment(answered.end)
    gap = f"from {end} to {texts.moment(until)} UTC"
    return f"no data of {answered.subject.name} {gap}: this is up to {end}"


def _incidents(settings: "Conf", layout: Layout) -> None:
    """Open incidents, what else is wrong, and whose names say more."""
    from quotaflow.pipelines.areas import diagnoses, problems  # noqa: PLC0415  as above
    from quotaflow.pipelines.areas.clusters import clusters  # noqa: PLC0415
    from quotaflow.pipelines.areas.scope import DAY, Scope  # noqa: PLC0415
    from quotaflow.pipelines.warehouse.readers import open_reader  # noqa: PLC0415

    reader = open_reader(settings)
    incidents = reader.rows(diagnoses.open_incidents(_MOST))
    if layout != Layout():
        columns = list(incidents[0]) if incidents else ["symptom"]
        output.write(map(values.plain, incidents), columns, layout)
        return
    lines = [f"{diagnoses.incident(row)}." for row in incidents]
    for cluster_id, end in clusters(reader).items():
        if settings.kafka.cluster_id in {None, cluster_id}:
            scope = Scope(reader, cluster_id, end - DAY, end, datetime.now(UTC), settings)
            lines += [each.text for each in problems.beside_incidents(scope, incidents)]
    output.lines(map(values.visible, lines or ["No incident is open."]))
    names = (name for row in incidents for name in row["names"])
    if command := next(filter(None, map(texts.why, names)), ""):
        output.note(f"`{command}` says what to do; run `quotaflow why` for each name above")


def _screen(answered: "WhyAnswer") -> Iterator[str]:
    subject = answered.subject
    time_range = texts.time_range(answered.start, answered.end)
    yield f"{subject.name}, {time_range}: {', '.join(subject.meanings)}"
    steps: set[str] = set()
    for area in answered.with_findings:
        yield from ("", area.heading)
        yield from _area(area, steps)
    if answered.nothing:
        yield from ("", answered.nothing)


def _area(area: "AreaAnswer", steps: set[str]) -> Iterator[str]:
    """Its findings; a step that was printed before is left out."""
    for finding in area.shown:
        yield f"- {finding.text} [{finding.evidence_table}]"
        if finding.next_step and finding.next_step not in steps:
            steps.add(finding.next_step)
            yield f"  next: {finding.next_step}"
    if more := len(area.folded):
        yield f"- {counted(more, 'more fact')}: --json has {noun(more, 'it', 'them')}"


def rows(answered: "WhyAnswer") -> Iterator[dict[str, Any]]:
    """The findings as rows of one shape, the same for every area: JSON's own types."""
    subject = {
        "name": answered.subject.name,
        "cluster_id": answered.cluster_id,
        "start": answered.start,
        "end": answered.end,
    }
    for area in answered.areas:
        for finding in area.findings:
            of_finding = {
                "area": area.name,
                "state": finding.state,
                "code": finding.code,
                "severity": finding.severity,
                "finding": finding.text,
                "next_step": finding.next_step,
                "evidence_table": finding.evidence_table,
                "evidence": finding.evidence,
            }
            of_evidence = {column: finding.evidence.get(column) for column in _OF_EVIDENCE}
            row = subject | of_finding | of_evidence
            yield {column: values.plain(row[column]) for column in COLUMNS}
