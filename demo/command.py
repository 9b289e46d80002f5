"""`quotaflow demo`: a real cluster, real clients, every job once, the tables and the plan."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from quotaflow.demo import runs, traffic
from quotaflow.demo.cluster import Cluster
from quotaflow.demo.shipper import Shipper
from quotaflow.demo.traffic_report import TrafficReport
from quotaflow.pipelines import config, run
from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.errors import JobError

LOG_TOPIC = "broker_request_logs"
_JAAS = "QUOTAFLOW_DEMO_JAAS"
_PLAN_WAITS = 3

_SHOWN: tuple[tuple[str, ...], ...] = (
    ("tables",),
    ("show", "requests", "--limit", "5"),
    ("show", "telemetry_pushes", "--limit", "5"),
    ("show", "telemetry_subscriptions", "--limit", "5"),
    ("show", "client_metrics", "--limit", "5"),
    (
        "sql",
        "SELECT principal, sum(new_ids) AS new_ids, max(rate_per_s) AS max_rate_per_s, "
        "min(tokens) AS min_tokens, bool_or(is_violating) AS violated "
        "FROM producer_id_rates GROUP BY principal ORDER BY new_ids DESC",
    ),
    (
        "sql",
        "SELECT target, outcome, reason, sum(row_count) AS row_count FROM pipeline_progress "
        "GROUP BY target, outcome, reason ORDER BY target, outcome, reason",
    ),
)


def register(app: typer.Typer) -> None:
    """Add `demo` to the command line."""
    app.command()(demo)


def demo(
    scale: Annotated[float, typer.Option(help="How long the traffic lasts: 1 is about 40 s.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the traffic.")] = 1,
) -> None:
    """Start a real three-broker cluster, let good and bad clients work, run every job, show it all.

    Takes two to three minutes and about 4 GB of memory; listens on 127.0.0.1 alone. Afterwards the
    cluster is stopped, and every command without --conf reads the tables it left. Needs a JDK.
    """
    console = Console(stderr=True, highlight=False)
    say = _clock(console)
    home = config.home()
    with runs.new(home) as folder:
        warehouse = folder / "warehouse"
        report = _fill(folder, warehouse, seed, scale, say)
        # Its passwords and data are of no use once the brokers are gone.
        runs.remove(folder / "cluster")
        is_published = runs.publish(home, warehouse)
    runs.remove_older(home)
    place = () if is_published else ("--set", f"warehouse.path={warehouse}")
    _print_tables(console, place)
    _print_plan(console, place)
    _print_end(console, report, place)


def _fill(
    folder: Path, warehouse: Path, seed: int, scale: float, say: Callable[[str], None]
) -> TrafficReport:
    with Cluster(folder / "cluster", progress=say) as cluster:
        shipped = Shipper(cluster.librdkafka_properties("shipper"), LOG_TOPIC, cluster.request_logs)
        with shipped:
            say("clients begin: alice, bob, carol, dave and mallory")
            report = traffic.run(cluster, seed, scale, say)
            counts = shipped.drain()
        say(f"{counts.acked} request-log lines shipped")
        conf = conf_of(cluster, warehouse)
        run.run(conf, [], None, say)
    return report


def conf_of(cluster: Cluster, warehouse: Path) -> config.Conf:
    """The default conf, pointed at a demo cluster; its login goes by reference through the environment."""
    properties = cluster.client_properties("admin")
    os.environ[_JAAS] = properties.pop("sasl.jaas.config")
    properties["sasl.jaas.config"] = f"env:{_JAAS}"
    known = config.load()
    return known.model_copy(
        update={
            "kafka": config.Kafka(properties=properties, cluster_id=cluster.cluster_id),
            "warehouse": config.Warehouse(path=str(warehouse)),
        }
    )


def _clock(console: Console) -> Callable[[str], None]:
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(Text(f"{time.monotonic() - began:6.1f} s  {text}"), soft_wrap=True)

    return say


def _print_tables(console: Console, place: tuple[str, ...]) -> None:
    for arguments in _SHOWN:
        _run(console, [*arguments, *place], allowed=(0,))


def _print_plan(console: Console, place: tuple[str, ...]) -> None:
    _run(console, ["plan", *place], allowed=(0, _PLAN_WAITS))


def _run(console: Console, arguments: list[str], allowed: tuple[int, ...]) -> None:
    shown = [f'"{argument}"' if " " in argument else argument for argument in arguments]
    console.print(Text(f"\n$ quotaflow {' '.join(shown)}", style="bold"), soft_wrap=True)
    code = execute(arguments)
    if code not in allowed:
        raise JobError(f"quotaflow {arguments[0]} ended with exit code {code}")


def _print_end(console: Console, report: TrafficReport, place: tuple[str, ...]) -> None:
    acked = sum(sum(client.records_acked.values()) for client in report.clients)
    where = " ".join(place)
    console.print(
        Text(
            f"\nThe clients wrote {acked} records and were given "
            f"{sum(client.producer_ids for client in report.clients)} producer ids, mallory "
            f"{report.producer_ids('User:mallory')} of them. Look further: "
            f"quotaflow show producer_id_rates --where \"is_violating\" {where}".rstrip()
        ),
        soft_wrap=True,
    )
