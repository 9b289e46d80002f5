"""Checks topics: existing, those of our checkpoints, and kept until they are read."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import OffsetSpec

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding, refused
from quotaflow.pipelines.kafka.admin import Cluster, Topic
from quotaflow.pipelines.kafka.cluster_state import TOPIC
from quotaflow.pipelines.streaming import checkpoints
from quotaflow.pipelines.streaming.checkpoints import Checkpoint
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

_KEYS = ("request_log_topic", "receiver_topic", "otlp_topic")
_JOBS = {
    "request_log_topic": "ingest_request_log",
    "receiver_topic": "ingest_receiver",
    "otlp_topic": "ingest_otlp",
}
_SOON = 0.2
_RETENTION = "retention.ms"
_CLEANUP = "cleanup.policy"
Offsets = Mapping[tuple[str, int], int]


def configured_topics(conf: Conf) -> list[str]:
    """The topics in conf."""
    return [*_ingested(conf), conf.feedback.lease_topic]


def _ingested(conf: Conf) -> list[str]:
    return [name for key in _KEYS if (name := getattr(conf.ingest, key))]


def findings(probe: Probe, cluster: Cluster) -> Iterator[Finding]:
    """Each topic in conf: existing, the one of the checkpoint, and read in time."""
    by_job = checkpoints.load(probe.conf.warehouse.checkpoint_folder)
    hidden = probe.unauthorized_topics(set(_ingested(probe.conf)) - cluster.topics.keys())
    for key in _KEYS:
        name = getattr(probe.conf.ingest, key)
        topic = cluster.topics.get(name)
        yield _topic(key, name, topic, is_hidden=name in hidden)
        if topic is not None:
            checkpoint = by_job.get(_JOBS[key])
            yield identity(key, cluster.cluster_id, topic, checkpoint)
            yield _read(probe, topic, checkpoint)
    yield _leases(probe, cluster.topics.get(probe.conf.feedback.lease_topic))


def _leases(probe: Probe, topic: Topic | None) -> Finding:
    """Whether the topic of leases keeps each lease until it is restored."""
    subject, name = "feedback.lease_topic", probe.conf.feedback.lease_topic
    if topic is None:
        seen = f"topic {name} does not exist, or this login may not see it"
        remedy = "create it before `apply --yes`: `quotaflow init` prints the command"
        return Finding(subject, WARNING, seen, remedy)
    (answer,) = probe.state.configs(TOPIC, [name])
    policy = {c.name: c.value for c in answer.content}.get(_CLEANUP)
    if topic.partitions != 1 or policy not in {"compact", None}:
        seen = f"topic {name} has {counted(topic.partitions, 'partition')} and {_CLEANUP} {policy}"
        return Finding(subject, BAD, seen, "create it again, as `quotaflow init` prints it")
    return Finding(subject, OK, f"topic {name}, {policy or 'its configs are hidden'}")


def _topic(key: str, name: str | None, topic: Topic | None, *, is_hidden: bool) -> Finding:
    if name is None:
        return Finding(f"ingest.{key}", OK, "switched off in conf")
    if is_hidden:
        remedy = f"grant Read on topic {name} (see the rights to run)"
        return Finding(f"ingest.{key}", BAD, f"this login may not see topic {name}", remedy)
    if topic is None:
        remedy = (
            f"create it (`quotaflow init` prints the command), or correct ingest.{key}; null "
            "switches it off"
        )
        return Finding(f"ingest.{key}", BAD, f"topic {name} does not exist", remedy)
    seen = f"topic {name}, id {topic.topic_id}, {counted(topic.partitions, 'partition')}"
    return Finding(f"ingest.{key}", OK, seen)


def identity(key: str, cluster_id: str, topic: Topic, checkpoint: Checkpoint | None) -> Finding:
    """Whether a checkpoint belongs to this topic, and not to one that was deleted."""
    subject = f"checkpoint of {_JOBS[key]}"
    if checkpoint is None:
        return Finding(subject, OK, "none yet: the topic will be read from its beginning")
    now = {"cluster_id": cluster_id, "topic": topic.name, "topic_id": topic.topic_id}
    if checkpoint.topic == now:
        return Finding(subject, OK, f"of this topic, at batch {checkpoint.batch_id}")
    stored = checkpoint.topic or {}
    name, topic_id = stored.get("topic"), stored.get("topic_id")
    was = f"topic {name} with id {topic_id} of {stored.get('cluster_id')}"
    remedy = (
        "the topic was recreated, or conf names another: check that, then `quotaflow run "
        "--accept-new-topic` reads it from its beginning"
    )
    return Finding(subject, BAD, f"belongs to {was}, not to this one", remedy)


def _read(probe: Probe, topic: Topic, checkpoint: Checkpoint | None) -> Finding:
    """Records that expire, or expired, before they are read; and the age of the newest record."""
    subject, now = f"records of {topic.name}", datetime.now(UTC)
    kept_ms, kept = _kept(probe, topic)
    soon_ms = int(now.timestamp() * 1_000 - kept_ms * (1 - _SOON)) if kept_ms > 0 else 0
    try:
        begin, soon = _offsets(probe, topic, OffsetSpec.EARLIEST), _offsets(probe, topic, soon_ms)
        end, newest = _offsets(probe, topic, OffsetSpec.LATEST), _newest(probe, topic)
    except kafka_errors.KafkaError as error:
        name = getattr(error, "message", None) or type(error).__name__
        return refused(subject, name, f"grant Describe on topic {topic.name}")
    # Offset -1: no record is that new, so all of them expire soon.
    young = {at: end[at] if offset < 0 else offset for at, offset in soon.items()}
    ours = checkpoint.kafka if checkpoint and checkpoint.kafka is not None else begin
    age = (
        f"newest {texts.duration(max(now.timestamp() * 1_000 - newest, 0))} old"
        if newest > 0
        else "empty"
    )
    return of_records(subject, f"{age}, {kept}", ReadPosition(begin, young, end, ours))


def _kept(probe: Probe, topic: Topic) -> tuple[int, str]:
    """Retention of records in ms, -1 if unlimited or unknown; and the same in words."""
    (answer,) = probe.state.configs(TOPIC, [topic.name])
    if answer.reason:
        return -1, f"retention unknown ({answer.reason})"
    kept_ms = int({c.name: c.value for c in answer.content}.get(_RETENTION) or -1)
    return kept_ms, f"kept {texts.duration(kept_ms)}" if kept_ms > 0 else "kept forever"


class ReadPosition:
    """Counts of records by partition offsets: lost, soon lost, unread."""

    def __init__(self, begin: Offsets, young: Offsets, end: Offsets, ours: Offsets) -> None:
        read = {at: ours.get(at, begin[at]) for at in begin}
        self.lost = sum(max(begin[at] - read[at], 0) for at in begin)
        self.soon = sum(max(young[at] - max(read[at], begin[at]), 0) for at in begin)
        self.unread = sum(max(end[at] - max(read[at], begin[at]), 0) for at in begin)
        self.is_past = any(read[at] > end[at] for at in begin)


def of_records(subject: str, about: str, reach: ReadPosition) -> Finding:
    """The finding on records that are not read yet."""
    seen = f"{about}; {reach.unread} not read yet"
    if reach.is_past:
        remedy = "the topic was emptied or recreated: see the checkpoint's finding"
        return Finding(subject, BAD, f"{seen}, and more were read than there are", remedy)
    if reach.lost:
        remedy = "they are lost: `quotaflow run` stops there and says how to go on; keep more"
        return Finding(subject, BAD, f"{seen}; {reach.lost} expired before they were", remedy)
    if reach.soon:
        remedy = "`quotaflow run --once` now, more often, or raise the topic's retention.ms"
        return Finding(subject, WARNING, f"{seen}; {reach.soon} of them expire soon", remedy)
    return Finding(subject, OK, seen)


def _offsets(probe: Probe, topic: Topic, spec: "OffsetSpec | int") -> Offsets:
    partitions = [TopicPartition(topic.name, n) for n in range(topic.partitions)]
    answers = probe.client.list_partition_offsets(dict.fromkeys(partitions, spec))
    return {(at.topic, at.partition): answer.offset for at, answer in answers.items()}


def newest_record(probe: Probe, topic: Topic) -> datetime | None:
    """Record time of the newest record; None if there is none or the login may not see it."""
    try:
        newest_ms = _newest(probe, topic)
    except kafka_errors.KafkaError:
        return None
    return datetime.fromtimestamp(newest_ms / 1_000, UTC) if newest_ms > 0 else None


def _newest(probe: Probe, topic: Topic) -> int:
    """Record time of the newest record in ms, -1 if there is none."""
    partitions = [TopicPartition(topic.name, n) for n in range(topic.partitions)]
    spec = dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP)
    answers = probe.client.list_partition_offsets(spec)
    return max((int(answer.timestamp) for answer in answers.values()), default=-1)
