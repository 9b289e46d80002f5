"""Which level a cluster is at, and what each next one would answer and cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quotaflow.pipelines.doctor import managed_services, topics
from quotaflow.pipelines.doctor.cluster_probe import Probe
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding
from quotaflow.pipelines.doctor.managed_services import ManagedService
from quotaflow.pipelines.errors import CheckpointError, QuotaflowError
from quotaflow.pipelines.kafka.admin import Cluster
from quotaflow.pipelines.monitoring import log_volume
from quotaflow.pipelines.monitoring.log_volume import LogVolume
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.levels import (
    ADMIN_API,
    IN_WORDS,
    LEVELS,
    SAMPLED_LOG,
    TELEMETRY,
    WHOLE_LOG,
)
from quotaflow.udfs.counted import counted

_RECENT = timedelta(days=1)
"""A level is reached if its newest record is not older."""
_PAGE = "docs/levels.md"
ANSWERS = {
    ADMIN_API: "quotas, throttles and left-overs, moves, producer ids, configs and their history",
    TELEMETRY: "what clients measure: latency, throttling, throughput, versions that push, alerts",
    SAMPLED_LOG: "who uses how much of which quota, who throttles whom, traffic between racks, "
    "reads that fail, lag, causes of producer ids, who altered which config",
    WHOLE_LOG: "the same exactly, and percentiles of latency and clients of few requests",
}
"""What a level answers beyond the ones before it."""
_REMEDIES = {
    TELEMETRY: "load a receiver and set a client-metrics resource: see receiver, subscriptions",
    SAMPLED_LOG: "ship the request log to ingest.request_log_topic, and name in ingest.sampling "
    "the APIs of which a part is enough; or `quotaflow capture --for 10m --yes` now and then",
    WHOLE_LOG: "remove ingest.sampling from conf",
}
_OF_BROKERS = "remove `sampling.` from the file of the brokers' appender"
_WEIGHTED = """
SELECT 1 FROM requests
WHERE cluster_id = {cluster} AND event_time >= {since} AND weight > 1 LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class LevelSources:
    """Times of the newest records that each level reads; None: there is none.

    `sampling` is the share of lines that ingest keeps, by API; `brokers_sample` whether lines are
    left out before that; `volume` what capture measured last.
    """

    telemetry_at: datetime | None = None
    log_at: datetime | None = None
    sampling: Mapping[str, float] | None = None
    brokers_sample: bool = False
    volume: LogVolume | None = None
    service: ManagedService | None = None


def findings(probe: Probe, cluster: Cluster, *, brokers_sample: bool) -> Iterator[Finding]:
    """The level, and each next one. `brokers_sample` is whether the newest lines say so."""
    ingest, now = probe.conf.ingest, datetime.now(UTC)
    try:
        sources = LevelSources(
            telemetry_at=_newest(probe, cluster, ingest.receiver_topic, ingest.otlp_topic),
            log_at=_newest(probe, cluster, ingest.request_log_topic),
            sampling=ingest.sampling,
            brokers_sample=brokers_sample or _is_stored_sampled(probe, cluster, now),
            volume=log_volume.load(probe.conf.warehouse, cluster.cluster_id),
            service=managed_services.of_servers(
                probe.conf.kafka.properties.get("bootstrap.servers", "")
            ),
        )
    except CheckpointError as error:
        yield Finding("level", BAD, str(error))
        return
    yield from of_sources(sources, now)


def of_sources(sources: LevelSources, now: datetime) -> Iterator[Finding]:
    """The same from what is known of a cluster. Pure."""
    level = reached(sources, now)
    seen = f"{level}: {IN_WORDS[level]}; it answers {_all_answers(level)}"
    if level in {SAMPLED_LOG, WHOLE_LOG}:
        seen += "; for brokers that log: see request logger"
    yield Finding("level", OK, seen)
    yield from _stale(sources, now)
    highest = sources.service.highest if sources.service else LEVELS[-1]
    if sources.service is not None:
        seen = f"{sources.service.name} by the name of its brokers: {sources.service.limits}"
        yield Finding("managed service", OK, seen, f"see {_PAGE}")
    for each in LEVELS[LEVELS.index(level) + 1 : LEVELS.index(highest) + 1]:
        seen = f"not reached: would answer {ANSWERS[each]}; costs {_cost(each, sources)}"
        yield Finding(f"level {each}", OK, seen, _remedy(each, sources))


def reached(sources: LevelSources, now: datetime) -> str:
    """The highest level of which records came within a day."""
    if _is_recent(sources.log_at, now):
        return SAMPLED_LOG if sources.sampling or sources.brokers_sample else WHOLE_LOG
    return TELEMETRY if _is_recent(sources.telemetry_at, now) else ADMIN_API


def _remedy(level: str, sources: LevelSources) -> str:
    if level != WHOLE_LOG or not sources.brokers_sample:
        return _REMEDIES[level]
    return f"{_REMEDIES[level]}, and {_OF_BROKERS}" if sources.sampling else _OF_BROKERS


def _is_stored_sampled(probe: Probe, cluster: Cluster, now: datetime) -> bool:
    """Whether lines of the last day stand for several requests though ingest keeps all.

    Of few lines that stand for many, none may be among the newest of the topic.
    """
    conf = probe.conf
    if conf.ingest.sampling:
        return False
    reader = open_reader(conf)
    since = literal(now - _RECENT)
    try:
        return bool(reader.rows(_WEIGHTED.format(cluster=literal(cluster.cluster_id), since=since)))
    except QuotaflowError:
        # The findings on tables name what is wrong with them.
        return False


def _is_recent(newest: datetime | None, now: datetime) -> bool:
    return newest is not None and now - newest <= _RECENT


def _stale(sources: LevelSources, now: datetime) -> Iterator[Finding]:
    """Topics whose newest record is too old to count."""
    for name, newest in (("telemetry", sources.telemetry_at), ("request log", sources.log_at)):
        if newest is not None and not _is_recent(newest, now):
            seen = f"the newest record is of {newest:%Y-%m-%d %H:%M} UTC: it does not count"
            yield Finding(f"level: {name}", WARNING, seen, "see the findings of its topic")


def _all_answers(level: str) -> str:
    return "; ".join(ANSWERS[each] for each in LEVELS[: LEVELS.index(level) + 1])


def _cost(level: str, sources: LevelSources) -> str:
    if level == TELEMETRY:
        return (
            "a restart of each broker, and 1.4 to 5.6 kB per client and interval.ms of its resource"
        )
    volume = sources.volume
    if volume is None:
        measure = "`quotaflow capture --for 1m --yes` measures it"
        size = f"about {log_volume.BYTES_PER_LINE:,} bytes a request to write and ship; {measure}"
    else:
        size = (
            f"{texts.rate(volume.bytes_per_s)} to write and ship, as capture measured at "
            f"{volume.ended_at:%Y-%m-%d %H:%M} UTC over {volume.duration_s:.0f} s at "
            f"{counted(len(volume.lines), 'broker')}"
        )
    return f"{size}; lines of ingest.sampling are not stored" if level == SAMPLED_LOG else size


def _newest(probe: Probe, cluster: Cluster, *names: str | None) -> datetime | None:
    times = [
        topics.newest_record(probe, topic)
        for name in names
        if name is not None and (topic := cluster.topics.get(name)) is not None
    ]
    return max((time for time in times if time is not None), default=None)
