"""The command report: the tables as one HTML file."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from quotaflow.pipelines.areas.clusters import newest_event
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.report.report import report as render_report
from quotaflow.pipelines.terminal import output, progress, times
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import going_on, open_reader

_STDOUT = Path("-")
_DEFAULT_LENGTH = timedelta(days=1)

Out = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="File to write or replace; - is stdout."),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help=f"From {times.FORMS} [a day before the newest event].",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ID", help="Cluster to report on, if the tables have several."
    ),
]


def report(
    out: Out = Path("quotaflow-report.html"),
    since: Since = None,
    cluster: Cluster = None,
    *,
    conf: options.ConfOptions,
) -> None:
    """Write one HTML file to read offline: the cluster, and what needs attention first.

    Sections: producer ids, client quotas, replication throttles and moves, racks, fetch sizes,
    telemetry and alerts, waiting and finished changes, quality, health of the pipeline. Needs no
    JVM. The file loads nothing from a network, and names that clients chose stay text in it.

    Example: quotaflow report --out today.html

    Example: quotaflow report --since 6h --out shift.html

    Example: quotaflow report --out - | mail --content-type=text/html team
    """
    if not out.name or out.is_dir():
        raise ConfigError(f"--out {out} cannot be written: name a file, e.g. --out report.html")
    settings = conf.of_advice()
    reader, now = open_reader(settings), datetime.now(UTC)
    with progress.shown("writing the report"):

        def made(tables: Reader) -> str:
            cluster_id, newest = newest_event(tables, cluster, settings.kafka.cluster_id, now)
            start, until = covered(since, newest, now)
            return render_report(Scope(tables, cluster_id, start, until, now, settings))

        text = going_on(made, reader, output.note)
    if out == _STDOUT:
        output.lines([text])
        return
    _replace(out, text)
    output.lines([f"wrote {out}"])


def covered(since: str | None, newest: datetime, now: datetime) -> tuple[datetime, datetime]:
    """The start and end of a report: `since` counts from now; the end is the newest event.

    If nothing came since the start, the end is now. Raises ConfigError as `times.since`.
    """
    until = min(newest, now)
    if since is None:
        return until - _DEFAULT_LENGTH, until
    start = times.since(since, now)
    return start, until if until > start else now


def _replace(out: Path, text: str) -> None:
    """Replace the file in one step, so that a reader always sees a whole report.

    What is no file, such as a device or a pipe, is written to, and stays what it is.
    """
    is_file = out.is_file() or not out.exists()
    new = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        try:
            if is_file:
                new.write_text(text, encoding="utf-8")
                new.replace(out)
            else:
                out.write_text(text, encoding="utf-8")
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from None
