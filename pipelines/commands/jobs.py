"""The commands run and jobs: run the streaming queries, list them."""

from pathlib import Path
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.monitoring import prometheus
from quotaflow.pipelines.terminal import logs, output, times
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.udfs.counted import counted

Jobs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[JOB]...",
        help="Jobs to run, or `facts` or `results` for one kind; all without a name.",
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Read what is there now, then stop.")]
Every = Annotated[
    str | None,
    typer.Option("--every", metavar="10s", help="Keep running, a batch every 10s, 5m, ..."),
]
AcceptNewTopic = Annotated[
    bool,
    typer.Option(
        "--accept-new-topic",
        help="Read a recreated topic from its beginning; rows read before stay.",
    ),
]
AcceptLostRecords = Annotated[
    bool,
    typer.Option(
        "--accept-lost-records",
        help="Skip records that were deleted unread; pipeline_progress counts them.",
    ),
]
MetricsPort = Annotated[
    str | None,
    typer.Option(
        "--metrics-port",
        metavar="[HOST:]PORT",
        help="Serve metrics to Prometheus, such as at 9464; loopback without a host.",
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        help="Write metrics to this file at the end (node_exporter).",
    ),
]
MetricsOtlp = Annotated[
    bool,
    typer.Option("--metrics-otlp", help="Export metrics by OTLP to where OTEL_* variables say."),
]


def run(
    jobs: Jobs = None,
    *,
    once: Once = False,
    every: Every = None,
    accept_new_topic: AcceptNewTopic = False,
    accept_lost_records: AcceptLostRecords = False,
    metrics_port: MetricsPort = None,
    metrics_file: MetricsFile = None,
    metrics_otlp: MetricsOtlp = False,
    conf: options.ConfOptions,
) -> None:
    """Fill the tables from Kafka, once or until Ctrl-C.

    Needs a JDK 17 or 21, and once the network for its jars: see `quotaflow doctor`.

    Example: quotaflow run --once

    Example: quotaflow run ingest_request_log request_results --every 10s

    Example: quotaflow run --every 10s --metrics-port 9464

    Example: quotaflow run facts --every 10s
    """
    if once == (every is not None):
        raise ConfigError("give exactly one of --once and --every 10s")
    every_s = None if every is None else times.seconds(every)
    values = conf.of_tables()
    from quotaflow.pipelines.jobs import runner  # noqa: PLC0415  imports pyspark

    with prometheus.exposed(values, metrics_port, metrics_file, by_otlp=metrics_otlp):
        rows = runner.run(
            values,
            jobs or [],
            every_s,
            logs.report,
            accept_new_topic=accept_new_topic,
            accept_lost_records=accept_lost_records,
        )
    logs.report(f"{counted(rows, 'row')} came in")


def jobs(*, layout: Layout) -> None:
    """List the jobs: what each reads, fills and does.

    Starts no JVM.

    Example: quotaflow jobs
    """
    from quotaflow.pipelines.jobs.registry import JOBS  # noqa: PLC0415  imports pyspark

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
    output.write(rows, names, layout, by_importance=False)
