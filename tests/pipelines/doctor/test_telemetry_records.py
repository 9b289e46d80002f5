"""Checks of the newest records of telemetry."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.doctor.finding import BAD, OK, WARNING, Finding
from quotaflow.pipelines.doctor.telemetry_records import COLLECTOR, RECEIVER, Route, of_records

from .test_request_log import Record

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
BY_JSON = Record(b'{"resourceMetrics":[]}', topic="otlp")


def of_file(golden: Path, name: str) -> list[Record]:
    rows = map(json.loads, (golden / "collector" / f"{name}.jsonl").read_text("utf-8").splitlines())
    return [
        Record(
            base64.b64decode(row["value"]),
            headers=tuple((key, base64.b64decode(value)) for key, value in row["headers"].items()),
        )
        for row in rows
    ]


def finding(records: list[Record], route: Route = COLLECTOR) -> Finding:
    return of_records(records, route, Conf(), NOW)


def without_headers(record: Record) -> Record:
    """As a Collector writes it without header_extraction."""
    data = MetricsData.FromString(record.value or b"")
    for each in data.resource_metrics:
        kept = [a for a in each.resource.attributes if not a.key.startswith("kafka.header.")]
        del each.resource.attributes[:]
        each.resource.attributes.extend(kept)
    return Record(data.SerializeToString())


def test_records_of_a_receiver_and_of_a_collector_are_ok(golden: Path) -> None:
    seen = "117 points, 0 of no client"
    received = finding(of_file(golden, "receiver"), RECEIVER)
    assert (received.state, received.observed) == (OK, f"of the newest 10: {seen}")
    collected = finding(of_file(golden, "otlp_metrics"))
    assert (collected.state, collected.observed) == (OK, f"of the newest 1: {seen}")
    assert finding([]) == Finding("Collector records", OK, "the topic has none")


def test_points_of_nobody_name_the_setting_of_the_collector(golden: Path) -> None:
    (record,) = of_file(golden, "otlp_metrics")
    nobody = finding([without_headers(record)])
    assert (nobody.state, nobody.observed) == (
        BAD,
        "of the newest 1: 117 points, 117 of no client",
    )
    assert "header_extraction" in nobody.remedy
    assert finding([record, without_headers(record)]).state == WARNING


@pytest.mark.parametrize(
    ("others", "state"), [([], BAD), ([b""], WARNING)], ids=["all", "one of two"]
)
def test_what_cannot_be_read_is_named(others: list[Any], state: str) -> None:
    unreadable = finding([BY_JSON, *map(Record, others)])
    assert unreadable.state == state
    assert "otlp_json (encode as protobuf (otlp_proto), not as JSON)" in unreadable.observed


def test_a_collectors_records_in_the_receivers_topic_name_the_right_key(golden: Path) -> None:
    (record,) = of_file(golden, "filelog_raw")[:1]
    assert finding([record], RECEIVER).state == BAD
    collected = without_headers(of_file(golden, "otlp_metrics")[0])
    assert "ingest.otlp_topic" in finding([collected], RECEIVER).remedy
