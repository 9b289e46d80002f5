"""Commands that run the queries: run, jobs."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options, output
from quotaflow.pipelines.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("run")(run_jobs)
    app.command("jobs")(list_jobs)


def run_jobs(
    jobs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB]...",
            help="Jobs to run, or `facts` or `results` for those of a kind; all without a name.",
        ),
    ] = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Take what is there now, then stop.")
    ] = False,
    every: Annotated[
        str | None, typer.Option("--every", metavar="10s", help="Go on, a batch every 10s, 5m, ...")
    ] = None,
    accept_new_topic: Annotated[
        bool,
        typer.Option(
            "--accept-new-topic",
            help="Read a topic that was made again from its beginning; rows read before stay.",
        ),
    ] = False,
    metrics_port: Annotated[
        str | None,
        typer.Option(
            "--metrics-port",
            metavar="[HOST:]PORT",
            help="Meanwhile let Prometheus scrape there, such as 9464; loopback without a host.",
        ),
    ] = None,
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics-file", metavar="FILE", help="At the end write metrics there (node_exporter)."
        ),
    ] = None,
    accept_lost_records: Annotated[
        bool,
        typer.Option(
            "--accept-lost-records",
            help="Go on behind records that were deleted unread; pipeline_progress counts them.",
        ),
    ] = False,
    conf: options.ConfFile = None,
    overrides: options.Overrides = None,
) -> None:
    """Fill the tables from Kafka, once or until Ctrl-C.

    Needs a JDK 17 or 21, and once the network for its jars: see `quotaflow doctor`.

    Example: quotaflow run --once

    Example: quotaflow run ingest_request_log request_results --every 10s

    Example: quotaflow run --every 10s --metrics-port 9464

    Example: quotaflow run facts --every 10s
    """
    if once == (every is not None):
        raise ConfigError("say how often: exactly one of --once and --every 10s")
    every_s = None if every is None else options.seconds(every)
    values = options.conf(conf, overrides)
    from quotaflow.pipelines import prometheus, run  # noqa: PLC0415  imports pyspark
    from quotaflow.pipelines.jobs import GROUPS, JOBS  # noqa: PLC0415

    for name in jobs or []:
        _check(name, [*JOBS, *GROUPS])
    with prometheus.told(values, metrics_port, metrics_file):
        rows = run.run(
            values,
            jobs or [],
            every_s,
            output.note,
            accept_new_topic=accept_new_topic,
            accept_lost_records=accept_lost_records,
        )
    output.note(f"{rows} rows came in")


def list_jobs(as_json: options.AsJson = False, as_csv: options.AsCsv = False) -> None:
    """List the jobs: what each reads, fills and does.

    Starts no JVM.

    Example: quotaflow jobs
    """
    options.one_format(as_json, as_csv)
    from quotaflow.pipelines.jobs import JOBS  # noqa: PLC0415  imports pyspark

    names = ["name", "meaning", "reads", "fills"]
    rows = [
        {
            "name": job.name,
            "meaning": job.doc,
            "reads": job.reads,
            "fills": ", ".join(table.name for table in job.fills),
        }
        for job in JOBS.values()
    ]
    output.write(rows, names, as_json=as_json, as_csv=as_csv, by_worth=False)


def _check(name: str, known: list[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
        raise ConfigError(f"no job {name} ({hint})")
