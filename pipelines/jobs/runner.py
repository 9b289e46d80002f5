"""Runs jobs: checks their checkpoints, starts their queries, watches them, and stops them."""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from quotaflow.pipelines.compute import result_state
from quotaflow.pipelines.config import Conf, SparkSection
from quotaflow.pipelines.errors import JobError, KafkaError
from quotaflow.pipelines.jobs import offset_gaps, selection
from quotaflow.pipelines.jobs.answers import RegularRefresh
from quotaflow.pipelines.jobs.job import Job, JobEnvironment, default_cluster_id
from quotaflow.pipelines.jobs.offset_gaps import JobOffsetGaps
from quotaflow.pipelines.jobs.progress_log import ProgressLog
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.jobs.regular_joins import RegularJoins
from quotaflow.pipelines.kafka import admin, rights
from quotaflow.pipelines.spark import failures, login, session
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.streaming import identity, sinks
from quotaflow.pipelines.streaming.listener import listening
from quotaflow.pipelines.terminal import logs
from quotaflow.pipelines.terminal.logs import LogLine
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import QUERY_PROGRESS, SETTINGS
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Report = Callable[[str], None]
_RETRIES = 5
_POLL_S, _SHORT_POLL_S = 2, 0.1
_FAILURES_FORGOTTEN_AFTER_S = 600
_PAUSE_S = 60
_FEW_RECORDS = 3_000_000
"""Up to so many records a run costs less without the JVM's second compiler. That takes 38 s of CPU
in a run of 2 million, and without it a record takes 10 us more."""


def run(
    conf: Conf,
    names: list[str],
    every_s: int | None,
    report: Report,
    *,
    accept_new_topic: bool = False,
    accept_lost_records: bool = False,
    with_answers: bool = True,
) -> int:
    """Run the named jobs or groups of them (all without names), once or every `every_s` seconds.

    Without `with_answers`, a run that ends leaves answers and alerts on rows to a later one.
    Returns the number of rows read. Raises a QuotaflowError that says what to do if a checkpoint
    does not fit, a topic or the cluster is missing, or a job fails permanently.
    """
    chosen = selection.jobs(names, conf)
    _check_secrets(conf, chosen)
    warehouse = Warehouse(conf.warehouse)
    with warehouse.lock():
        if not names:
            _give_up_unsent(conf, warehouse, report)
        _check_state(chosen, warehouse)
        cluster_id = _check_topics(conf, chosen, warehouse, accept_new_topic)
        gaps = _gaps(conf, chosen, warehouse)
        if gaps and not accept_lost_records:
            raise gaps[0].refusal()
        of_spark = _spark_section(conf, chosen, warehouse, is_once=every_s is None)
        spark = session.get(login.section(of_spark, conf.kafka, report), report)
        _make_tables(chosen, warehouse, spark)
        tables = open_reader(conf, lambda: spark)
        written = identity.batches_written(tables)
        _check_batches(chosen, written, warehouse, accept_new=accept_new_topic)
        cluster = cluster_id or default_cluster_id(conf, tables)
        logs.of_cluster(cluster)
        environment = JobEnvironment(spark, conf, warehouse, cluster)
        for gap in gaps:
            lost = offset_gaps.accept(environment, gap, JOBS[gap.job].fills, datetime.now(UTC))
            records = f"{counted(lost, 'lost record')} of {gap.topic}"
            report(logs.warning(f"going on behind {records}", gap.job))
        with listening(spark) as listener:
            runner = _Runner(environment, report, ProgressLog(environment, report, listener))
            return runner.run(chosen, every_s, with_answers=with_answers)


def _check_secrets(conf: Conf, chosen: list[Job]) -> None:
    """Raise ConfigError for a secret that is missing, before anything starts."""
    conf.privacy.pseudonyms()
    for job in chosen:
        if job.receiver:
            job.receiver(conf)


def _give_up_unsent(conf: Conf, warehouse: Warehouse, report: Report) -> None:
    """Set aside checkpoints of jobs that are off, or upkeep keeps for them what they did not read.

    A run that names its jobs may be an exception, so it leaves them.
    """
    for job in JOBS.values():
        checkpoint, key = warehouse.checkpoint(job.name), job.off_by(conf)
        if job.receiver and key and identity.is_started(checkpoint):
            identity.set_aside(checkpoint)
            report(logs.warning(f"{key} is null, so it starts over once it is on again", job.name))


def _make_tables(chosen: list[Job], warehouse: Warehouse, spark: "SparkSession") -> None:
    """Make the tables of jobs.

    A job may read a table that another fills, also when that one is not run now. Views read
    settings, which only a snapshot fills.
    """
    needed = {QUERY_PROGRESS.name, SETTINGS.name}
    for job in chosen:
        needed |= {job.reads, *(table.name for table in (*job.fills, *job.looks_up))}
    with failures.as_job_error("making the tables"):
        warehouse.ensure(lambda: spark, [t for name, t in TABLES.items() if name in needed])


def _check_batches(
    chosen: list[Job],
    written: Mapping[str, dict[str, int]],
    warehouse: Warehouse,
    *,
    accept_new: bool,
) -> None:
    """Raise CheckpointError if a checkpoint does not fit the batches that its tables have."""
    for job in chosen:
        checkpoint, batches = warehouse.checkpoint(job.name), written.get(job.name, {})
        if job.appends:
            identity.check_tables(checkpoint, batches, accept_new=accept_new)
        else:
            identity.check_result(checkpoint, batches)


def _check_state(chosen: list[Job], warehouse: Warehouse) -> None:
    """Raise CheckpointError if a state file is broken: each micro-batch would fail on it."""
    for job in chosen:
        result_state.load(warehouse.checkpoint(job.name))
        identity.starting_offsets(warehouse.checkpoint(job.name))


def _check_topics(
    conf: Conf, chosen: list[Job], warehouse: Warehouse, accept_new: bool
) -> str | None:
    reads = _topics(conf, chosen)
    if not reads:
        return None
    topics = sorted(set(reads.values()))
    cluster = admin.describe(conf.kafka.login, topics, conf.kafka.cluster_id)
    for job, topic in reads.items():
        if topic not in cluster.topics:
            key = JOBS[job].topic
            raise KafkaError(
                f"topic {topic} does not exist on {cluster.cluster_id}, or this login lacks Read "
                f"on it: create it, name another in ingest.{key}, or set ingest.{key}: null"
            )
        now = identity.TopicIdentity(cluster.cluster_id, topic, cluster.topics[topic].topic_id)
        identity.check_topic(warehouse.checkpoint(job), now, accept_new=accept_new)
    return cluster.cluster_id


def _gaps(conf: Conf, jobs: list[Job], warehouse: Warehouse) -> list[JobOffsetGaps]:
    return offset_gaps.find_all(conf.kafka.login, warehouse, _topics(conf, jobs))


def _topics(conf: Conf, jobs: list[Job]) -> dict[str, str]:
    return {job.name: str(getattr(conf.ingest, job.topic)) for job in jobs if job.topic}


def _spark_section(
    conf: Conf, jobs: list[Job], warehouse: Warehouse, *, is_once: bool
) -> SparkSection:
    """Conf of the session: a run that ends is over before much that a JVM compiles pays."""
    if not is_once:
        return conf.spark
    records = offset_gaps.unread(conf.kafka.login, warehouse, _topics(conf, jobs))
    return conf.spark if records > _FEW_RECORDS else session.one_compiler(conf.spark)


class _Runner:
    """The queries of one run, their failures, and the lines reported to the user."""

    def __init__(self, environment: JobEnvironment, report: Report, log: ProgressLog) -> None:
        self.environment = environment
        self.report = report
        self.log = log
        self.answers = RegularRefresh(environment, report)
        self.failures: dict[str, list[float]] = {}
        self.reported: set[str] = set()
        self.paused_until: dict[str, float] = {}

    def run(self, jobs: list[Job], every_s: int | None, *, with_answers: bool) -> int:
        """Run jobs once, or again and again; returns the number of rows read."""
        try:
            with failures.as_job_error("recording the progress of batches"):
                if every_s is not None:
                    return self.keep_running(jobs, every_s)
                rows = self.once(jobs)
            if with_answers:
                self.answers.refresh()
            self._joins(jobs).join()
            failed = [line for job in jobs for line in self.not_up_to_date(job)]
            if failed:
                raise JobError("; ".join(failed))
            return rows
        finally:
            self._write_progress()

    def once(self, jobs: list[Job]) -> int:
        """Run jobs over the rows that are there now; returns the number of rows read.

        A job begins when all jobs are done that fill what it reads. Jobs that do not depend on each
        other run at the same time: much of a small batch is Spark's own work on one core.
        """
        by_name = {job.name: job for job in jobs}
        order = TopologicalSorter(selection.dependencies(jobs))
        order.prepare()
        rows, running = 0, dict[str, "StreamingQuery"]()
        try:
            while order.is_active():
                for name in order.get_ready():
                    self.report(LogLine(f"reading {by_name[name].reads}", job=name))
                    running[name] = self._start(by_name[name], sinks.ONCE)
                time.sleep(_SHORT_POLL_S)
                for name, query in list(running.items()):
                    if again := self._unfinished(by_name[name], query):
                        running[name] = again
                        continue
                    rows += self._finished(by_name[name], query)
                    del running[name]
                    order.done(name)
                self.log.take()
        finally:
            _stop_all(running.values())
        return rows

    def _unfinished(self, job: Job, query: "StreamingQuery") -> "StreamingQuery | None":
        """The query, or another one if it failed in a way that may pass; None once all is read."""
        if query.isActive:
            return query
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            self.log.finish(job)
            if self._is_receiver_away(job, error, "the next run"):
                return None
            self._wait_before_retry(job, error)
            return self._start(job, sinks.ONCE)
        return None

    def _finished(self, job: Job, query: "StreamingQuery") -> int:
        """Record the end of a query; returns the number of rows read."""
        rows = self.log.finish(job)
        if not rows and not query.exception():
            self.log.record_idle(query)
            self._refresh(job)
        return rows

    def _start(self, job: Job, trigger: sinks.Trigger) -> "StreamingQuery":
        with failures.as_job_error(job.name):
            query = job.start(self.environment, trigger)
        self.log.follow(job, query)
        return query

    def _write_progress(self) -> None:
        """Write the events that are left. A run whose session died ends with its own error."""
        expected: tuple[type[Exception], ...] = (OSError, *spark_errors())
        try:
            self.log.close()
        except expected as error:
            why = failures.one_line(error)
            self.report(logs.warning(f"query_progress lacks the last batches: {why}"))

    def _refresh(self, job: Job) -> None:
        with failures.as_job_error(job.name):
            job.refresh(self.environment)

    def not_up_to_date(self, job: Job) -> list[str]:
        """A line for each result of a job whose rule failed last."""
        return result_state.not_up_to_date(self.environment.warehouse.checkpoint(job.name))

    def keep_running(self, jobs: list[Job], every_s: int) -> int:
        """Run jobs at the same time until one fails permanently or the user stops them."""
        trigger: sinks.Trigger = {"processingTime": f"{every_s} seconds"}
        joins, queries = self._joins(jobs), {job.name: self._start(job, trigger) for job in jobs}
        self.report(f"running {', '.join(queries)} every {every_s} s; Ctrl-C stops after the batch")
        try:
            while True:
                time.sleep(_POLL_S)
                self.log.take()
                self.answers.refresh_if_due()
                joins.begin_if_due()
                for job in jobs:
                    queries[job.name] = self._supervised(job, queries[job.name], trigger)
        finally:
            _stop_all(queries.values())
            joins.stop()

    def _joins(self, jobs: list[Job]) -> RegularJoins:
        return RegularJoins(self.environment.conf, self.environment.warehouse, jobs, self.report)

    def _supervised(
        self, job: Job, query: "StreamingQuery", trigger: sinks.Trigger
    ) -> "StreamingQuery":
        for line in self.not_up_to_date(job):
            if line not in self.reported:
                self.reported.add(line)
                self.report(logs.warning(line, job.name))
        if query.isActive or time.monotonic() < self.paused_until.get(job.name, 0):
            return query
        if self.paused_until.pop(job.name, None) is None:
            error = query.exception() or JobError(f"{job.name} stopped without a reason")
            self.log.finish(job)
            if self._is_receiver_away(job, error, f"{_PAUSE_S} s"):
                self.paused_until[job.name] = time.monotonic() + _PAUSE_S
                return query
            self._wait_before_retry(job, error)
        return self._start(job, trigger)

    def _is_receiver_away(self, job: Job, error: Exception, again: str) -> bool:
        """Whether a query failed only by a receiver, which no other job waits for; reports it."""
        # The text of another job's error may have what a client chose.
        is_away = job.receiver is not None and failures.is_receiver_away(str(error))
        if is_away:
            why = failures.one_line(error)
            self.report(logs.warning(f"{why}; its batch is sent again in {again}", job.name))
        return is_away

    def _wait_before_retry(self, job: Job, error: Exception) -> None:
        recent = [
            at
            for at in self.failures.get(job.name, [])
            if at > time.monotonic() - _FAILURES_FORGOTTEN_AFTER_S
        ]
        self.failures[job.name] = [*recent, time.monotonic()]
        if len(recent) >= _RETRIES or not failures.is_transient(str(error)):
            for gap in _gaps(self.environment.conf, [job], self.environment.warehouse):
                raise gap.refusal() from error
            hint = rights.hint("run", str(error))
            raise JobError(f"{job.name} failed: {failures.one_line(error)}{hint}") from error
        wait_s = 2 ** len(recent)
        why = failures.one_line(error)
        self.report(logs.warning(f"{why}; trying again in {wait_s} s", job.name))
        time.sleep(wait_s)


def _stop_all(queries: Collection["StreamingQuery"]) -> None:
    """Stop queries at once: each stop waits until its batch is interrupted, or `stopTimeout`."""
    if queries:
        with ThreadPoolExecutor(len(queries), "stop") as pool:
            list(pool.map(_stop, queries))


def _stop(query: "StreamingQuery") -> None:
    """Stop a query, and ignore its errors: Ctrl-C ends its Python workers too."""
    with suppress(*spark_errors()):
        query.stop()
