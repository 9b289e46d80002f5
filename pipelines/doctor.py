"""What a machine and a cluster lack for quotaflow to run, each finding with its remedy."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.pipelines import jars, java
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.reader import Reader
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas import tables

if TYPE_CHECKING:
    from quotaflow.pipelines.admin import Cluster

_LATE = timedelta(minutes=30)
OK, WARNING, BAD, UNCHECKED = "ok", "warning", "bad", "unchecked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it is, what was seen, and what to do about it."""

    subject: str
    state: str
    seen: str
    remedy: str = ""


def examine(conf: Conf) -> Iterator[Finding]:
    """Look at everything in turn; only reads, and fetches nothing."""
    yield _tried("JDK", _jdk)
    yield _pyspark()
    yield _jars()
    yield from _warehouse(Warehouse(conf.warehouse))
    if not conf.warehouse.catalog_schema:
        yield from _feedback(conf, datetime.now(UTC))
    yield from _cluster(conf)
    yield from _unchecked()


def _tried(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, OK, look())
    except QuotaflowError as error:
        return _bad(subject, error)


def _bad(subject: str, error: QuotaflowError) -> Finding:
    """Our errors end in what to do, after their last colon."""
    seen, _, remedy = str(error).rpartition(": ")
    return Finding(subject, BAD, seen or remedy, remedy if seen else "")


def _jdk() -> str:
    return f"{java.java()}, version {java.OLDEST} or newer"


def _pyspark() -> Finding:
    if find_spec("pyspark") is None:
        return Finding("pyspark", BAD, "not installed", "pip install 'quotaflow[local]'")
    return Finding("pyspark", OK, "installed")


def _jars() -> Finding:
    folder = jars.cache_folder() / "jars"
    if any(folder.glob("spark-jars-*/checked.json")):
        return Finding("jars for Spark", OK, f"fetched and checked, in {folder}")
    remedy = "the first `quotaflow run` fetches them from Maven Central; later runs work offline"
    return Finding("jars for Spark", WARNING, f"not fetched yet into {folder}", remedy)


def _warehouse(warehouse: Warehouse) -> Iterator[Finding]:
    if warehouse.conf.catalog_schema:
        seen = f"catalog schema {warehouse.conf.catalog_schema}: not looked into from here"
        yield Finding("tables", UNCHECKED, seen)
        return
    yield _writable(warehouse.conf.folder)
    holder = warehouse.holder()
    yield Finding("lock", OK, f"held by {holder}" if holder else "nobody writes now")
    reader = Reader(warehouse)
    made = [name for name in tables.TABLES if reader.is_made(name)]
    if made:
        yield _tried("tables", lambda: _counted(reader, made))
    else:
        remedy = "fill them with `quotaflow run --once`"
        yield Finding("tables", WARNING, f"none in {warehouse.conf.folder}", remedy)


def _writable(folder: Path) -> Finding:
    existing = next(path for path in [folder.resolve(), *folder.resolve().parents] if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return Finding("warehouse", OK, f"{folder} can be written")
    remedy = "make it writable, or name another with warehouse.path"
    return Finding("warehouse", BAD, f"{existing} cannot be written", remedy)


def _counted(reader: Reader, made: list[str]) -> str:
    extents = {name: reader.extent(name) for name in made}
    return ", ".join(f"{name} {extent.rows} rows" for name, extent in extents.items())


def _feedback(conf: Conf, now: datetime) -> Iterator[Finding]:
    """What we wrote to clusters and should have given back, and what stops us."""
    from quotaflow.pipelines.feedback import planning, restore, turn  # noqa: PLC0415

    stopped = turn.stopped_by_file(conf)
    if stopped is None:
        yield Finding("stop file", OK, f"{turn.stop_file(conf)} is not there")
    else:
        yield Finding("stop file", WARNING, stopped, "remove it to apply and restore again")
    ledger = planning.ledger(conf)
    over = restore.due(ledger, now - _LATE)
    seen = f"{len(ledger.owned)} configs held, {len(over)} past their lease"
    if ledger.open:
        seen += f", {len(ledger.open)} changes without a known end"
    is_well = not over and not ledger.open
    remedy = "" if is_well else "run `quotaflow restore --yes`, and on a schedule"
    yield Finding("leases", OK if is_well else WARNING, seen, remedy)


def _cluster(conf: Conf) -> Iterator[Finding]:
    from quotaflow.pipelines import admin  # noqa: PLC0415  kafka-python is slow to import

    servers = conf.kafka.properties.get("bootstrap.servers", "no bootstrap.servers")
    wanted = {
        "request_log_topic": conf.ingest.request_log_topic,
        "receiver_topic": conf.ingest.receiver_topic,
        "otlp_topic": conf.ingest.otlp_topic,
    }
    try:
        cluster = admin.describe(conf.kafka.properties, [name for name in wanted.values() if name])
    except QuotaflowError as error:
        yield _bad("cluster", error)
        return
    yield _identity(conf, cluster.cluster_id, servers)
    for key, name in wanted.items():
        yield _topic(key, name, cluster)


def _identity(conf: Conf, cluster_id: str, servers: str) -> Finding:
    pinned = conf.kafka.cluster_id
    if pinned and pinned != cluster_id:
        seen = f"{servers} is cluster {cluster_id}, and conf means {pinned}"
        return Finding("cluster", BAD, seen, "correct kafka.cluster_id or bootstrap.servers")
    return Finding("cluster", OK, f"{servers} answers, cluster id {cluster_id}")


def _topic(key: str, name: str | None, cluster: "Cluster") -> Finding:
    if name is None:
        return Finding(f"ingest.{key}", OK, "switched off in conf")
    topic = cluster.topics.get(name)
    if topic is None:
        remedy = f"create it, or correct ingest.{key}; null switches this way in off"
        return Finding(f"ingest.{key}", BAD, f"topic {name} does not exist", remedy)
    seen = f"topic {name}, id {topic.topic_id}, {topic.partitions} partitions"
    return Finding(f"ingest.{key}", OK, seen)


def _unchecked() -> Iterator[Finding]:
    for subject, remedy in (
        ("ACLs", "Describe and Read on the topics are needed, and groups spark-kafka-source-*"),
        ("log format", "`quotaflow parse FILE` tells whether lines are readable"),
        ("receiver", "clients push telemetry only when brokers load some receiver class"),
    ):
        yield Finding(subject, UNCHECKED, "not looked at yet", remedy)
