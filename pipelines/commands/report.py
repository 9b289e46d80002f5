"""The command report: what the tables say, as one HTML file."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options, output
from quotaflow.pipelines.errors import ConfigError

Out = Annotated[
    Path,
    typer.Option("--out", metavar="FILE", help="Where to write it; what is there is replaced."),
]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("report")(report)


def report(
    out: Out = Path("quotaflow-report.html"),
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Write one HTML file to read offline: traffic between racks, what it costs, what would help.

    Reads rack_traffic and preferred_replicas; needs no JVM. The file asks nothing of any network,
    and what clients named themselves stays text in it.

    Example: quotaflow report --out today.html
    """
    from quotaflow.pipelines.commands import answers  # noqa: PLC0415  imports pyarrow
    from quotaflow.pipelines.report.report import report as html  # noqa: PLC0415

    reader = answers.open_reader(options.conf(conf, overrides))
    _replace(out, html(reader, datetime.now(UTC)))
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
