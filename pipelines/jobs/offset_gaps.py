"""Records of a topic that a job can no longer read, found by its checkpoint before it starts.

Retention removes records before a job that runs too rarely reads them, and a log may be truncated.
Spark's Kafka source fails in both cases or, with failOnDataLoss=false, skips the records silently.
Here the error names the offsets, and a loss that the user accepts is counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from quotaflow.pipelines.errors import CheckpointError
from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.kafka import admin
from quotaflow.pipelines.streaming import identity, topic_position
from quotaflow.pipelines.streaming.checkpoints import newest_batch, query_id
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.streaming.topic_position import TopicPosition
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.udfs.counted import counted, noun

LogBounds = Mapping[int, range]


@dataclass(frozen=True, slots=True)
class OffsetGap:
    """A partition whose log does not have the offset that a job reads next."""

    partition: int
    offset: int
    log: range

    @property
    def lost(self) -> int:
        """The number of records deleted before they were read; 0 if the log was truncated."""
        return max(self.log.start - self.offset, 0)

    def __str__(self) -> str:
        """The gap in words, for a message."""
        if self.lost:
            were = noun(self.lost, "was deleted before it was", "were deleted before they were")
            return (
                f"partition {self.partition} begins at {self.log.start}, so that the "
                f"{counted(self.lost, 'record')} from {self.offset} on {were} read"
            )
        return f"partition {self.partition} ends at {self.log.stop}, and was read to {self.offset}"


@dataclass(frozen=True, slots=True)
class JobOffsetGaps:
    """The offset gaps of one job, with its position in the topic and the topic's logs."""

    job: str
    topic: str
    position: TopicPosition
    log: LogBounds
    gaps: tuple[OffsetGap, ...]

    def refusal(self) -> CheckpointError:
        """The error for a run that does not accept the loss."""
        if any(gap.lost for gap in self.gaps):
            why = "Retention of the topic is shorter than the time between two runs: extend it"
        else:
            why = (
                "A log is cut back by an unclean election of a leader, or when a broker comes back "
                "with older disks: look into that"
            )
        return CheckpointError(
            f"{self.job} cannot go on where it stopped in {self.topic}: "
            f"{'; '.join(map(str, self.gaps))}. {why}, then go on with what there is with "
            "--accept-lost-records, which counts them as lost in pipeline_progress"
        )


def find_all(
    properties: Mapping[str, str], warehouse: Warehouse, topics: Mapping[str, str]
) -> list[JobOffsetGaps]:
    """The gaps of started jobs, by the logs of their topics as the cluster reports them now."""
    started = [job for job in topics if identity.is_started(warehouse.checkpoint(job))]
    read = {topics[job] for job in started}
    logs = {topic: admin.log_bounds(properties, topic) for topic in read}
    gaps = [find_in_job(warehouse, job, topics[job], logs[topics[job]]) for job in started]
    return [job_gaps for job_gaps in gaps if job_gaps]


def unread(properties: Mapping[str, str], warehouse: Warehouse, topics: Mapping[str, str]) -> int:
    """The number of records that jobs have yet to read of their topics, job to topic."""
    logs = {topic: admin.log_bounds(properties, topic) for topic in {*topics.values()}}
    total = 0
    for job, topic in topics.items():
        position = topic_position.read_position(warehouse.checkpoint(job), topic)
        offsets = position.offsets if position else {}
        for partition, log in logs[topic].items():
            total += len(range(max(log.start, offsets.get(partition, log.start)), log.stop))
    return total


def find_in_job(warehouse: Warehouse, job: str, topic: str, log: LogBounds) -> JobOffsetGaps | None:
    """The offsets this job reads next that the topic's logs no longer have, or None."""
    position = topic_position.read_position(warehouse.checkpoint(job), topic)
    if position is None:
        return None
    gaps = tuple(
        OffsetGap(partition, offset, log[partition])
        for partition, offset in sorted(position.offsets.items())
        if partition in log and not log[partition].start <= offset <= log[partition].stop
    )
    return JobOffsetGaps(job, topic, position, log, gaps) if gaps else None


def accept(
    environment: JobEnvironment, gaps: JobOffsetGaps, fills: tuple[Table, ...], now: datetime
) -> int:
    """Count the lost records, and let a new query start after them; returns their number.

    The checkpoint is moved aside. A micro-batch that was cut off after it had written some of its
    rows is not read again, so its other records are lost too.
    """
    checkpoint, position = environment.warehouse.checkpoint(gaps.job), gaps.position
    begins = {p: _begin(p, gaps, environment.conf.kafka.login) for p in gaps.log}
    counts = [Count("lost", sum(gap.lost for gap in gaps.gaps), None, "deleted_before_read")]
    if position.cut_off_ends and _is_written(environment, gaps.job, fills):
        ends = {p: max(begins[p], end) for p, end in position.cut_off_ends.items() if p in begins}
        skipped = sum(end - begins[p] for p, end in ends.items())
        counts.append(Count("lost", skipped, None, "cut_off_and_deleted"))
        begins |= ends
    _last_batch(environment.warehouse, gaps.job, "/lost").report(
        lambda: environment.spark, counts, environment.cluster_id, now
    )
    identity.restart_from(checkpoint, {gaps.topic: {str(p): at for p, at in begins.items()}})
    return sum(count.rows for count in counts)


def _begin(partition: int, gaps: JobOffsetGaps, properties: Mapping[str, str]) -> int:
    log, offset = gaps.log[partition], gaps.position.offsets.get(partition, 0)
    if offset > log.stop:
        # Records since the job last ran were appended to the truncated log.
        return admin.offset_at(properties, gaps.topic, partition, gaps.position.planned_ms)
    return max(offset, log.start)


def _is_written(environment: JobEnvironment, job: str, fills: tuple[Table, ...]) -> bool:
    """Whether the last micro-batch wrote to at least one table."""
    last = _last_batch(environment.warehouse, job)
    return any(last.is_appended(environment.spark, table) for table in fills)


def _last_batch(warehouse: Warehouse, job: str, part: str = "") -> Batch:
    checkpoint = warehouse.checkpoint(job)
    return Batch(
        warehouse, job, query_id(checkpoint), newest_batch(checkpoint), part, replayed=True
    )
