"""`quotaflow backfill`: adds records of a past time that the topic has and the tables lack.

Records are read by their record time, in slices, and processed by ingest's own code. A row whose
record is in its table already is skipped, so a second run adds nothing. The checkpoint of the live
query is only read: records that the query has not read are left to it. To the queries that read
those tables, added rows are new rows.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import CheckpointError, JobError, KafkaError
from quotaflow.pipelines.facts.backfill_batch import BackfillBatch, already_read
from quotaflow.pipelines.facts.ingest import INGESTS
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.spark import failures, login, session
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming import checkpoints, identity, sources
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, sliced
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOB = "backfill"
Report = Callable[[str], None]
Write = Callable[["DataFrame", Batch], None]


def jobs(conf: Conf) -> dict[str, str]:
    """The jobs that read a topic, with the topic in conf."""
    topics = {job.name: job.topic and getattr(conf.ingest, job.topic) for job in JOBS.values()}
    return {name: topic for name, topic in topics.items() if topic}


def backfill(
    conf: Conf,
    name: str,
    time_range: TimeRange,
    slice_s: int,
    report: Report,
    *,
    is_new: bool = True,
) -> dict[str, int]:
    """Add the rows that the tables lack of a range of record time; returns rows added by table.

    The queries that read those tables leave out rows that are not new. Raises CheckpointError if
    the live query never started: it will read its whole topic.
    """
    topic, warehouse = jobs(conf)[name], Warehouse(conf.warehouse)
    with warehouse.lock():
        cluster_id, read = _read(conf, name, topic, warehouse.checkpoint(name))
        spark = session.get(login.section(conf.spark, conf.kafka, report), report)
        warehouse.ensure(lambda: spark, JOBS[name].fills)
        write = INGESTS[name](conf, cluster_id).write
        records = partial(sources.read_topic_between, spark, conf.kafka, topic)
        slices = sliced(
            time_range.start, time_range.end, datetime.now(UTC), timedelta(seconds=slice_s)
        )
        run_id, added = f"{JOB} {uuid.uuid4()}", dict[str, int]()
        for number, part in enumerate(slices):
            batch = BackfillBatch(warehouse, JOB, run_id, number, is_new=is_new)
            try:
                write(already_read(records(part), read), batch)
            except spark_errors() as error:
                raise JobError(
                    f"{name}: {failures.one_line(error)}; run it again: nothing is added twice"
                ) from error
            for table, rows in batch.added.items():
                added[table] = added.get(table, 0) + rows
            report(f"{name}: {_line(batch)}, slice {number + 1} of {len(slices)}")
        return added


def _read(conf: Conf, name: str, topic: str, checkpoint: Path) -> tuple[str, dict[int, int]]:
    """The cluster id, and the live query's next offsets; its checkpoint must be of this topic."""
    read = next_offsets(checkpoint, topic)
    if not read:
        raise CheckpointError(
            f"{name} has read nothing of {topic} yet, and will read all of it: "
            f"quotaflow run {name} --once"
        )
    cluster = admin.describe(conf.kafka.login, [topic], conf.kafka.cluster_id)
    if topic not in cluster.topics:
        raise KafkaError(f"topic {topic} does not exist on {cluster.cluster_id}")
    current = identity.TopicIdentity(cluster.cluster_id, topic, cluster.topics[topic].topic_id)
    identity.check_topic(checkpoint, current, accept_new=False)
    return cluster.cluster_id, read


def next_offsets(checkpoint: Path, topic: str) -> dict[int, int]:
    """The next offset of each partition, after the live query's committed batches."""
    done = checkpoints.committed(checkpoint)
    read = (done.kafka if done else None) or {}
    return {partition: offset for (name, partition), offset in read.items() if name == topic}


def _line(batch: BackfillBatch) -> str:
    parts = [
        f"{counted(rows, 'row')} added to {table} "
        f"({counted(batch.present[table], 'was', 'were')} there)"
        for table, rows in batch.added.items()
    ]
    return ", ".join(parts) or "no records"
