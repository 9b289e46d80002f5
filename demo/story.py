"""The demo's story up to its tables: a cluster, its clients, and every job once."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import yaml
from confluent_kafka import Producer

from quotaflow.demo import runs, traffic
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.jvm import BROKER_HEAP_MB
from quotaflow.demo.shipper import Shipper
from quotaflow.demo.traffic_report import TrafficReport
from quotaflow.pipelines import config
from quotaflow.pipelines.config import AlertsSection, QuotasSection
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.jobs.registry import GROUPS, JOBS
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.snapshots.sections import SNAPSHOT_TABLES
from quotaflow.pipelines.spark import session
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.snapshots import ACTIVE_PRODUCERS

_JAAS = "QUOTAFLOW_DEMO_JAAS"
# The default rule takes minutes; dave's quota holds his producer back for longer than this at once.
_ALERTS = AlertsSection(
    rules=[
        AlertRule(
            name="throttled",
            metric="org.apache.kafka.producer.produce.throttle.time.avg",
            above=100.0,
            for_s=3,
            stale_s=60,
        )
    ]
)

SHORTENED: Mapping[str, Mapping[str, int]] = {
    "plan": {"offence_period_s": 120, "address_history_s": 20},
}
"""What lets a plan act after a minute of traffic: by default it waits half an hour for advice to
work, and knows a week of who uses an address."""

Say = Callable[[str], None]
Run = Callable[[list[str]], None]
"""Runs a command of quotaflow, and shows what it prints."""


def play(seed: int, scale: float, say: Say, run: Run) -> tuple[TrafficReport, tuple[str, ...]]:
    """Run it all in a folder of its own, and leave the tables where every command finds them.

    Returns a report of the clients, and the options by which commands find the tables: none, unless
    the user has a warehouse in that place. Interrupted, it leaves nothing behind.
    """
    # Brokers that are still loading make librdkafka warn, and it tries again by itself.
    logging.getLogger("quotaflow.demo").setLevel(logging.ERROR)
    home = config.home()
    with runs.new_run(home) as folder:
        warehouse = folder / "warehouse"
        report = _fill(folder, seed, scale, say, run)
        # Its passwords and data are of no use once the brokers have stopped.
        runs.remove(folder / "cluster")
        is_published = runs.publish(home, warehouse)
    runs.remove_older(home, folder)
    return report, () if is_published else ("--set", f"warehouse.path={warehouse}")


def conf_of(cluster: LocalCluster, warehouse: Path) -> config.Conf:
    """The default conf for a demo cluster; its login is passed by the environment."""
    properties = cluster.client_properties("admin")
    os.environ[_JAAS] = properties.pop("sasl.jaas.config")
    properties["sasl.jaas.config"] = f"env:{_JAAS}"
    return config.load().model_copy(
        update={
            "kafka": config.KafkaSection(properties=properties, cluster_id=cluster.cluster_id),
            "warehouse": config.WarehouseSection(path=str(warehouse)),
            "alerts": _ALERTS,
            # The quota of dave is too small for his exports; a raise is due a day after it was set.
            "quotas": QuotasSection(advised_users=["dave"]),
            # No broker reports its heap. Without a quota of conf nobody exceeds one.
            "producer_ids": config.ProducerIdsSection(
                broker_heap_bytes=BROKER_HEAP_MB * 2**20, default_quota_per_s=1.0
            ),
            # As if this machine, and so every client that declares no rack, were in the first rack.
            "racks": {"127.0.0.1/32": "az-a"},
            "spark": config.SparkSection(conf=session.SHORT_LIVED),
        }
    )


def _fill(folder: Path, seed: int, scale: float, say: Say, run: Run) -> TrafficReport:
    with LocalCluster(folder / "cluster", progress=say) as cluster:
        conf = conf_of(cluster, folder / "warehouse")
        # The pace of producer ids shows between a snapshot before the traffic and one after it.
        _take(conf, say, [ACTIVE_PRODUCERS])
        login = cluster.librdkafka_properties("shipper")
        with Shipper(login, REQUEST_LOG_TOPIC, cluster.request_logs) as shipper:
            report = traffic.run(cluster, seed, scale, say)
            say(f"{shipper.drain().acked} request-log lines shipped")
            _ship_torn_line(cluster)
        _take(conf, say, [ACTIVE_PRODUCERS])
        # A snapshot reads from facts who set a config, and results read the snapshot.
        facts, results = in_two(conf)
        runner.run(conf, facts, None, say)
        _take(conf, say, [table for table in SNAPSHOT_TABLES if table != ACTIVE_PRODUCERS])
        runner.run(conf, results, None, say)
        _limit(conf, folder, say, run)
    return report


def _take(conf: config.Conf, say: Say, tables: Iterable[Table]) -> None:
    take.take(conf, datetime.now(UTC), say, [table.name for table in tables])


def _limit(conf: config.Conf, folder: Path, say: Say, run: Run) -> None:
    """Limit the address of who takes producer ids too fast, and give it back.

    By default there is only advice: the conf file that is shown shortens how long a plan waits.
    """
    run(["plan", "--set", f"warehouse.path={conf.warehouse.path}"])
    file = folder / "short.yaml"
    given = conf.model_dump(mode="json", exclude_defaults=True, exclude={"spark"})
    text = yaml.safe_dump({**given, **SHORTENED}, sort_keys=False)
    file.write_text(text, encoding="utf-8")
    say(f"{file.name}:\n{text.rstrip()}")
    of_short = ["--conf", str(file)]
    run(["snapshot", "settings", *of_short])
    run(["plan", *of_short])
    run(["apply", "--yes", *of_short])
    run(["restore", "--all", "--yes", *of_short])


def in_two(conf: config.Conf) -> tuple[list[str], list[str]]:
    """The jobs that fill facts, and those that maintain results."""
    on = [job for job in JOBS.values() if job.topic is None or getattr(conf.ingest, job.topic)]
    facts, results = ([job.name for job in on if job.name in group] for group in GROUPS.values())
    return facts, results


def _ship_torn_line(cluster: LocalCluster) -> None:
    """Act as a careless shipper: half a line, so that quarantine has a row."""
    broker_id, path = min(cluster.request_logs.items())
    with path.open("rb") as log:
        half = log.readline(120)
    producer = Producer({**cluster.librdkafka_properties("shipper"), "enable.metrics.push": False})
    producer.produce(REQUEST_LOG_TOPIC, half, headers=[("broker_id", str(broker_id).encode())])
    producer.flush(30)
