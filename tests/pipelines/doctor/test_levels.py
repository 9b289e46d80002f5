"""The level of a cluster, and what doctor says of the next ones."""

from datetime import UTC, datetime, timedelta

import pytest

from quotaflow.pipelines.doctor import levels, managed_services
from quotaflow.pipelines.doctor.levels import LevelSources
from quotaflow.pipelines.doctor.managed_services import SERVICES
from quotaflow.pipelines.monitoring.log_volume import LogVolume
from quotaflow.schemas.levels import ADMIN_API, LEVELS, SAMPLED_LOG, TELEMETRY, WHOLE_LOG

from ...cases import cases

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RECENTLY, LONG_AGO = NOW - timedelta(hours=2), NOW - timedelta(days=3)
VOLUME = LogVolume("c1", RECENTLY, 60.0, {"1": 600, "2": 300}, {"1": 660_000, "2": 330_000})


@cases(
    ("sources", "level"),
    ("no topic has a record", LevelSources(), ADMIN_API),
    ("clients push", LevelSources(telemetry_at=RECENTLY), TELEMETRY),
    ("a sampled log", LevelSources(log_at=RECENTLY, sampling={"PRODUCE": 0.1}), SAMPLED_LOG),
    (
        "brokers sample",
        LevelSources(log_at=RECENTLY, sampling={}, brokers_sample=True),
        SAMPLED_LOG,
    ),
    ("all", LevelSources(telemetry_at=RECENTLY, log_at=RECENTLY, sampling={}), WHOLE_LOG),
    ("the log ended", LevelSources(telemetry_at=RECENTLY, log_at=LONG_AGO), TELEMETRY),
    ("all ended", LevelSources(telemetry_at=LONG_AGO, log_at=LONG_AGO), ADMIN_API),
)
def test_a_level_is_reached_if_its_records_came_within_a_day(
    sources: LevelSources, level: str
) -> None:
    first, *others = levels.of_sources(sources, NOW)
    assert first.observed.startswith(f"{level}: ")
    next_ones = [each.subject for each in others if each.subject.startswith("level ")]
    assert next_ones == [f"level {name}" for name in LEVELS[LEVELS.index(level) + 1 :]]
    assert all(each.remedy for each in others)


@pytest.mark.parametrize(
    ("sampling", "brokers_sample", "remedy"),
    [
        ({"PRODUCE": 0.1}, False, "remove ingest.sampling from conf"),
        ({}, True, "remove `sampling.` from the file of the brokers' appender"),
        (
            {"PRODUCE": 0.1},
            True,
            "remove ingest.sampling from conf, and remove `sampling.` from the file of the "
            "brokers' appender",
        ),
    ],
)
def test_who_samples_is_named_as_the_way_to_a_whole_log(
    sampling: dict[str, float], brokers_sample: bool, remedy: str
) -> None:
    sources = LevelSources(log_at=RECENTLY, sampling=sampling, brokers_sample=brokers_sample)
    assert [each.remedy for each in levels.of_sources(sources, NOW)][1:] == [remedy]


def test_a_source_that_ended_is_named() -> None:
    findings = {
        each.subject: each for each in levels.of_sources(LevelSources(log_at=LONG_AGO), NOW)
    }
    assert findings["level: request log"].state == "warning"
    assert "2026-11-18 12:00 UTC" in findings["level: request log"].observed


def test_the_cost_of_a_log_is_what_capture_measured() -> None:
    unmeasured = {each.subject: each for each in levels.of_sources(LevelSources(), NOW)}
    assert "1,100 bytes a request" in unmeasured["level whole_log"].observed
    assert "quotaflow capture --for 1m --yes" in unmeasured["level whole_log"].observed
    measured = {each.subject: each for each in levels.of_sources(LevelSources(volume=VOLUME), NOW)}
    assert "costs 16.5 kB/s to write and ship" in measured["level whole_log"].observed
    assert "over 60 s at 2 brokers" in measured["level sampled_log"].observed
    assert "are not stored" in measured["level sampled_log"].observed


@cases(
    ("servers", "name"),
    ("provisioned", "b-1.x.abc.c2.kafka.eu-west-1.amazonaws.com:9098", "Amazon MSK"),
    ("serverless", "boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098", "Amazon MSK"),
    ("a machine at Amazon", "ec2-1-2-3-4.compute.amazonaws.com:9092", None),
    ("confluent", "pkc-1.eu.aws.confluent.cloud:9092", "Confluent Cloud"),
    ("event hubs", "NS.servicebus.windows.net:9093", "Azure Event Hubs"),
    ("aiven", "k-x.aivencloud.com:12345", "Aiven"),
    ("the second server", "a:9092, seed-1.x.cloud.redpanda.com:9092", "Redpanda Cloud"),
    ("a name that only begins so", "confluent.cloud.example.com:9092", None),
    ("none", "", None),
    ("an address", "[::1]:9092", None),
)
def test_a_managed_service_is_known_by_the_names_of_its_brokers(
    servers: str, name: str | None
) -> None:
    service = managed_services.of_servers(servers)
    assert (service and service.name) == name


def test_no_level_is_advised_that_a_managed_service_does_not_allow() -> None:
    for service in SERVICES:
        findings = list(levels.of_sources(LevelSources(service=service), NOW))
        assert [each.subject for each in findings] == ["level", "managed service"]
        assert service.limits in findings[1].observed
