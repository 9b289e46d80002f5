"""What a job is: one query, what it reads and fills, and its environment."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from quotaflow.pipelines.compute.maintainer import ResultMaintainer
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.streaming import checkpoints, identity, sinks, sources
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True, slots=True)
class JobEnvironment:
    """What a job runs in: a session, conf, the tables, and the cluster whose topics it reads.

    A job that reads no topic has the default cluster of its tables. Their rows hold their own.
    """

    spark: "SparkSession"
    conf: Conf
    warehouse: Warehouse
    cluster_id: str | None

    def topic(self, name: str) -> str | None:
        """The topic that conf names under this key of `ingest`; None if conf switches it off."""
        return getattr(self.conf.ingest, name, None)

    def records(self, job: str, topic: str) -> "DataFrame":
        """The stream of records that a job reads from the topic under this key of `ingest`."""
        start = identity.starting_offsets(self.warehouse.checkpoint(job))
        most = self.conf.ingest.max_offsets_per_trigger
        return sources.read_topic(self.spark, self.conf.kafka, str(self.topic(topic)), most, start)


@dataclass(frozen=True, slots=True)
class Job:
    """One query. `topic` is the key of conf's ingest section that names the topic it reads.

    `needs` is another key of conf: without a value the job is off, as without a topic. `receiver`
    looks up what the job sends to, and raises ConfigError: no other job waits for it.
    """

    name: str
    doc: str
    reads: str
    fills: tuple[Table, ...]
    start: "Callable[[JobEnvironment, sinks.Trigger], StreamingQuery]"
    topic: str | None = None
    needs: str | None = None
    receiver: Callable[[Conf], object] | None = None
    looks_up: tuple[Table, ...] = ()
    results: "Callable[[Conf], tuple[Result, ...]] | None" = None

    @property
    def appends(self) -> bool:
        """Whether the job appends rows, so that without its checkpoint it would append them twice.

        A job of results replaces the rows that it computes again, and one may only count.
        """
        return self.results is None and self.fills != (PIPELINE_PROGRESS,)

    def off_by(self, conf: Conf) -> str | None:
        """The key of conf that switches the job off, by being null."""
        key = f"ingest.{self.topic}" if self.topic else self.needs
        return key if key and attrgetter(key)(conf) is None else None

    def refresh(self, environment: JobEnvironment) -> None:
        """Bring results up to date without new facts: their lookup tables may have new rows."""
        if self.results is None:
            return
        maintainer = ResultMaintainer(self.results(environment.conf), environment.conf.results)
        checkpoint = environment.warehouse.checkpoint(self.name)
        now_ms = time.time_ns() // 1_000_000
        query_id = checkpoints.query_id(checkpoint)
        batch = sinks.Batch(environment.warehouse, self.name, query_id, now_ms, has_time_id=True)
        maintainer.refresh(environment.spark, batch)


def default_cluster_id(conf: Conf, tables: Reader) -> str | None:
    """The cluster of a run that reads only tables, and so connects to no broker.

    That is the cluster in conf, else the only one whose topics were read, else that of the newest
    count; None if nothing was ever read or counted. Rows that are read have their own cluster id:
    only batches without rows are counted under this one.
    """
    if conf.kafka.cluster_id:
        return conf.kafka.cluster_id
    read = identity.cluster_ids(conf.warehouse.checkpoint_folder)
    if len(read) == 1:
        return read.pop()
    counted = tables.rows(
        f"SELECT cluster_id FROM {PIPELINE_PROGRESS.name} "
        "WHERE cluster_id IS NOT NULL ORDER BY event_time DESC LIMIT 1"
    )
    return str(counted[0]["cluster_id"]) if counted else None
