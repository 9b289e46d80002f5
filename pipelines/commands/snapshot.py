"""The command snapshot: reads the cluster's state and writes what changed."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.snapshots import sections, take
from quotaflow.pipelines.terminal import logs
from quotaflow.udfs.counted import counted


def snapshot(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            help="Tables to fill; all of them without a name.",
            autocompletion=options.relations,
        ),
    ] = None,
    *,
    conf: options.ConfOptions,
) -> None:
    """Read the cluster's state and configs, and write what changed since the last snapshot.

    Fills the tables of the cluster's state: brokers, topics, replicas, their sizes, ongoing moves,
    configs, client quotas, producers, transactional ids, groups and their offsets. The table
    client_subscriptions has which client each client-metrics resource matches, and what it got. The
    table settings has values of conf that views read.

    What a broker refuses or does not answer is reported and counted in pipeline_progress, and its
    rows stay as they were; the rest is written. The login needs DESCRIBE and DESCRIBE_CONFIGS on
    the cluster, DESCRIBE, DESCRIBE_CONFIGS and, for active_producers, READ on topics, and DESCRIBE
    on transactional ids and groups. Run it on a schedule, after `quotaflow run`. Where the tables
    are in a folder it needs no JVM, except for tables of an older release.

    Example: quotaflow snapshot

    Example: quotaflow snapshot client_quotas configs
    """
    settings = conf.of_tables()
    names = [table.name for table in sections.SNAPSHOT_TABLES]
    for name in tables or []:
        if name not in names:
            raise ConfigError(f"a snapshot fills no table {name}{nearest(name, names)}")
    rows = take.take(settings, datetime.now(UTC), logs.report, tables or [])
    logs.report(f"{counted(rows, 'row')} written")
