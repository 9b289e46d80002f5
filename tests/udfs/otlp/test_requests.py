"""Points to requests of OTLP: what was pushed comes back, and who pushed cannot be claimed."""

import gzip
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.otlp import decode, requests
from quotaflow.udfs.otlp.codecs import Limits

from . import otlp_messages
from .otlp_made import attribute, exponential, gauge, payload, point
from .test_differential import SAMPLES, SLOW
from .test_pushes import pushes

EPOCH = datetime.fromtimestamp(0, UTC)
OF_PLACE = ("series_id", "event_time", "start_time")
OF_POINT = [*requests._OF_METRIC, *requests._NUMBERS]


def points(*payloads: bytes) -> pa.Table:
    batch = pushes(list(payloads), ["none"] * len(payloads))
    made = list(decode.decode_pushes(Limits())(iter([batch])))
    return pa.Table.from_batches(made, CLIENT_METRICS.arrow)


def encoded(rows: pa.Table) -> Iterator[tuple[ExportMetricsServiceRequest, int]]:
    """Each request, and how many points it says it has."""
    for made in requests.encode(iter(rows.select(list(requests.READ)).to_batches())):
        for row in made.to_pylist():
            body = gzip.decompress(row["body"])
            yield ExportMetricsServiceRequest.FromString(body), row["points"]


def comparable(rows: pa.Table, sent_name: Callable[[str], str] = str) -> list[str]:
    listed = rows.to_pylist()
    for row in listed:
        row["attributes"] = sorted({sent_name(k): v for k, v in row["attributes"] or ()}.items())
    return sorted(repr([row[name] for name in OF_POINT]) for row in listed)


def assert_comes_back(rows: pa.Table) -> None:
    """A request is a payload, so what reads payloads reads it."""
    again = [points(request.SerializeToString()) for request, _ in encoded(rows)]
    came = pa.concat_tables(again) if again else CLIENT_METRICS.arrow.empty_table()
    assert comparable(came) == comparable(rows, requests._own_name)


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_clients_pushed_comes_back_and_counts(golden: Path, sample: str) -> None:
    rows = points((golden / f"otlp/{sample}.data.bin").read_bytes())
    assert_comes_back(rows)
    assert sum(count for _, count in encoded(rows)) == rows.num_rows > 0


@given(otlp_messages.messages())
@example(MetricsData.FromString(payload(gauge(point(attributes=[attribute("_")])))))
@example(MetricsData.FromString(payload(exponential(zero_threshold=-0.0))))
@SLOW
def test_any_point_that_is_in_the_table_comes_back(message: MetricsData) -> None:
    rows = points(message.SerializeToString())
    listed = rows.to_pylist()
    places = {repr([row[name] for name in OF_PLACE]) for row in listed}
    # The table has microseconds: times of points differ by at least one, also from 1970.
    assume(len(places) == rows.num_rows)
    assume(not any(EPOCH in (row["event_time"], row["start_time"]) for row in listed))
    assert_comes_back(rows)


def attributes(given: Any) -> dict[str, str]:
    names = [each.key for each in given]
    assert len(set(names)) == len(names)
    return {each.key: each.value.string_value for each in given}


def test_a_client_that_names_itself_another_replaces_nothing() -> None:
    claims = {
        "kafka.principal": "User:admin",
        "Kafka_Client_Id": "vip",
        "service.name": "billing",
        "service_instance_id": "other",
        "job": "j",
        "__name__": "up",
    }
    named = [attribute(key, string_value=text) for key, text in claims.items()]
    own = [attribute("group_id", string_value="g"), *named]
    labelled = [attribute("topic", string_value="t"), *named]
    rows = points(payload(gauge(point(attributes=labelled)), resource=own))
    ((request, _),) = encoded(rows)
    (resource,) = request.resource_metrics
    ours = {
        "service.name": "kafka-client",
        "service.instance.id": "i0",
        "kafka.client.instance.id": "i0",
        "kafka.principal": "User:0",
    }
    theirs = {f"client.{key}": text for key, text in claims.items()}
    assert attributes(resource.resource.attributes) == ours | theirs | {"group_id": "g"}
    (sent,) = resource.scope_metrics[0].metrics[0].gauge.data_points
    assert attributes(sent.attributes) == theirs | {"topic": "t"}


def test_pushes_share_no_resource_and_a_request_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [gauge(point(), name=f"m{number}") for number in range(25)]
    rows = points(payload(*many), payload(*many))
    ((request, count),) = encoded(rows)
    assert ([len(request.resource_metrics)], count) == ([2], 50)
    monkeypatch.setattr(requests, "_MAX_POINTS", 20)
    assert [count for _, count in encoded(rows)] == [20, 20, 10]
    assert_comes_back(rows)
    monkeypatch.setattr(requests, "_MAX_BYTES", 1)
    assert [count for _, count in encoded(rows)] == [1] * 50
