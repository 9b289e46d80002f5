"""The command report: the tables as one HTML file."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import output

Out = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="File to write; an existing one is replaced."),
]
Since = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From this long before the newest event (6h, 7d), or an ISO time.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ID", help="Cluster to report on, if the tables have several."
    ),
]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("report")(report)


def report(
    out: Out = Path("quotaflow-report.html"),
    since: Since = "1d",
    cluster: Cluster = None,
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Write one HTML file to read offline: the cluster, and what needs attention first.

    Sections: producer ids, client quotas, replication throttles and moves, racks, fetch sizes,
    telemetry and alerts, waiting and finished changes, quality, health of the pipeline. Needs no
    JVM. The file loads nothing from a network, and names that clients chose stay text in it.

    Example: quotaflow report --out today.html

    Example: quotaflow report --since 6h --out shift.html
    """
    if not out.name or out.is_dir():
        raise ConfigError(f"--out {out} cannot be written: name a file, e.g. --out report.html")
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415  imports pyarrow
    from quotaflow.pipelines.report import scope  # noqa: PLC0415
    from quotaflow.pipelines.report.report import report as render_report  # noqa: PLC0415

    settings = options.conf(conf, overrides)
    reader, now = answers.open_reader(settings), datetime.now(UTC)
    newest_events = scope.clusters(reader)
    # While the tables have no cluster, the one that conf pins is not there either.
    cluster_id = scope.choose_cluster(
        newest_events, cluster or (settings.kafka.cluster_id if newest_events else None)
    )
    until = min(newest_events.get(cluster_id, now), now)
    start = options.since(since, until)
    of_cluster = scope.Scope(reader, cluster_id, start, until, now, settings)
    _replace(out, render_report(of_cluster))
    output.lines([f"wrote {out}"])


def _replace(out: Path, text: str) -> None:
    """Replace the file in one step, so that a reader always sees a whole report."""
    new = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(out)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from None
