"""The command that starts only a demo cluster and keeps it until Ctrl-C."""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from quotaflow.demo.cluster import MAX_NODES, LocalCluster
from quotaflow.demo.credentials import CLIENTS
from quotaflow.demo.ports import LOOPBACK
from quotaflow.pipelines.errors import KafkaError, QuotaflowError


def main(
    folder: Annotated[Path, typer.Option(help="New folder for data, logs and passwords.")],
    nodes: Annotated[int, typer.Option(min=1, max=MAX_NODES)] = 3,
) -> None:
    """Start a Kafka cluster on this machine and keep it until Ctrl-C."""
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    console = Console(stderr=True)
    try:
        with LocalCluster(folder, nodes, progress=console.print) as cluster:
            console.print(_how_to_reach(cluster), soft_wrap=True)
            while len(cluster.pids) == nodes:
                time.sleep(0.5)
            lost = sorted(set(cluster.racks) - set(cluster.pids))
            raise KafkaError(f"broker {lost} ended by itself: see its logs below {folder}")
    except QuotaflowError as error:
        console.print(f"error: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt:
        console.print("stopped")


def _how_to_reach(cluster: LocalCluster) -> str:
    users = ", ".join(CLIENTS)
    return "\n".join(
        [
            f"bootstrap servers  {cluster.bootstrap_servers}",
            f"logins             {cluster.folder}/USER.properties, USER = {users}",
            *(f"request log of {node:<3} {log}" for node, log in cluster.request_logs.items()),
            *(f"JMX of {node:<11} {LOOPBACK}:{port}" for node, port in cluster.jmx_ports.items()),
            "Ctrl-C stops it",
        ]
    )


if __name__ == "__main__":
    typer.run(main)
