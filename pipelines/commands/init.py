"""The command init: conf, topics, rights and broker files for a new cluster."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quotaflow.pipelines.commands import options
from quotaflow.pipelines.config import kafka, load
from quotaflow.pipelines.connect import cluster_discovery, files
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import output
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from quotaflow.pipelines.connect.cluster_discovery import Discovery

Servers = Annotated[
    str | None,
    typer.Option("--bootstrap-server", metavar="HOST:PORT[,...]", help="Brokers of the cluster."),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files.")]
Offline = Annotated[bool, typer.Option("--offline", help="Do not connect; assume three brokers.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


def init(
    bootstrap_server: Servers = None,
    out: Out = Path("quotaflow-setup"),
    *,
    offline: Offline = False,
    force: Force = False,
    conf: options.ConfOptions,
) -> None:
    """Write the files that connect a cluster: conf, topics, rights, broker files.

    Reads the cluster's id, brokers and topics, and changes nothing. Values given by --set go into
    conf.yaml, those of the login too: secrets by reference (env:NAME, secret:scope/key). Values and
    conf files of environment variables do not go there. NEXT.md says what to do with the files.

    Example: quotaflow init --bootstrap-server broker-1:9092

    Example: quotaflow init --bootstrap-server broker-1:9093 --set
    kafka.properties.security.protocol=SASL_SSL --set kafka.properties.sasl.mechanism=SCRAM-SHA-512
    --set kafka.properties.sasl.username=quotaflow --set kafka.properties.sasl.password=env:PASSWORD
    """
    if bootstrap_server is None and conf.file is None:
        raise ConfigError("--bootstrap-server is missing: name brokers as host:port,host:port")
    problem = bootstrap_server is not None and kafka.servers_problem(bootstrap_server)
    if problem:
        raise ConfigError(f"--bootstrap-server {bootstrap_server}: {problem}")
    servers = [f"kafka.properties.bootstrap.servers={bootstrap_server}"] if bootstrap_server else []
    # A new conf takes nothing from one that the environment names, such as its login.
    settings = load(conf.file, [*servers, *(conf.overrides or [])])
    cluster = cluster_discovery.OFFLINE if offline else cluster_discovery.discover(settings)
    settings = files.without_receiver(settings, cluster.release)
    contents = files.render(settings, cluster, datetime.now(UTC))
    files.write(out, contents, over=force)
    output.lines(str(out / name) for name in contents)
    if not offline:
        for line in _seen(cluster):
            output.note(line)
    output.note(f"{out / 'NEXT.md'} says what to do next")


def _seen(cluster: "Discovery") -> Iterator[str]:
    """What of the cluster was read, and what its login may not read."""
    existing = ", ".join(sorted(cluster.topics)) or "none"
    yield (
        f"cluster {cluster.cluster_id}: {counted(cluster.broker_count, 'broker')} of Kafka "
        f"{cluster.release}; existing topics: {existing}"
    )
    if cluster.raft_listeners is None:
        yield (
            "this login may not read configs of brokers: compare ingest.controller_listeners with "
            "their controller.listener.names"
        )
