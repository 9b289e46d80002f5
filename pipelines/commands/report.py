"""The command report: what the tables say, as one HTML file."""

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
    typer.Option("--out", metavar="FILE", help="Where to write it; what is there is replaced."),
]
Since = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="TIME",
        help="From so long before the newest event (6h, 7d), or an ISO time, on.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ID", help="Of which cluster, where the tables hold some."),
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
    """Write one HTML file to read offline: what this cluster is, and what needs attention first.

    Sections: producer ids, client quotas, replication throttles and moves, racks, fetch sizes,
    telemetry and alerts, changes that wait and were made, quality, health of the pipeline. Needs no
    JVM. The file asks nothing of any network, and what clients named themselves stays text in it.

    Example: quotaflow report --out today.html

    Example: quotaflow report --since 6h --out shift.html
    """
    if not out.name or out.is_dir():
        raise ConfigError(f"--out {out} cannot be written: name a file, e.g. --out report.html")
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415  imports pyarrow
    from quotaflow.pipelines.report import scope  # noqa: PLC0415
    from quotaflow.pipelines.report.report import report as html  # noqa: PLC0415

    settings = options.conf(conf, overrides)
    reader, now = answers.open_reader(settings), datetime.now(UTC)
    newest_events = scope.clusters(reader)
    # Where no cluster is known yet, the one that conf pins is not either.
    cluster_id = scope.choose_cluster(
        newest_events, cluster or (settings.kafka.cluster_id if newest_events else None)
    )
    until = min(newest_events.get(cluster_id, now), now)
    start = options.since(since, until)
    _replace(out, html(scope.Scope(reader, cluster_id, start, until, now)))
    output.lines([f"wrote {out}"])


def _replace(out: Path, text: str) -> None:
    """All of it or nothing: a report that somebody reads stays whole until the new one is."""
    new = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(out)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from None
