"""Pushes to data points: what protobuf reads of golden payloads, and each push once."""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.facts import client_metrics, ingest
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.streaming import sinks, sources
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CLIENT_METRICS

from ...pushes import encoded, pushing
from .conftest import RECORD_TIME

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GOLDEN_ACCEPTED = 18
# A client that only headers name: it has no request-log line.
ALONE = 2
# Columns of client_metrics that the records of the receiver here do not have.
LOG_COLUMNS = (
    *("principal", "client_id", "client_software_name", "client_software_version"),
    *("client_address", "client_port", "listener", "broker_id", "accepted"),
)
MADE = (*JOBS["ingest_request_log"].fills, CLIENT_METRICS)
BY_COLLECTOR = "AAAAAAAAAAAAAAAAAAAAAA"
Point = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """What the job wrote in three runs, what its queries observed, and what it reported."""

    rows: list[dict[str, Any]]
    observed: list[dict[str, int]]
    reported: list[dict[str, Any]]


@pytest.fixture(scope="module")
def run(
    spark: SparkSession,
    topic: Callable[..., DataFrame],
    push_lines: list[dict[str, Any]],
    golden: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """Golden pushes by the request log; then some again by the receiver, and one only by it;
    then all of those again by a Collector, which made one batch of them and of one unknown.
    """
    conf = config.Conf(
        warehouse=config.WarehouseSection(path=str(tmp_path_factory.mktemp("warehouse"))),
        results=config.ResultsSection(max_lateness_s=3_600),
    )
    warehouse = Warehouse(conf.warehouse)
    warehouse.ensure(lambda: spark, MADE)
    lines = [encoded(line) for line in push_lines]
    log = ingest.of_request_log(conf, "cluster")
    receiver = ingest.of_receiver(conf, "cluster")
    log.write(topic([*lines, lines[0], *bad(push_lines[0])]), Batch(warehouse, "log", "q1", 0))
    observed = [decode(spark, conf, warehouse)]
    again = [
        (data_of(line), {"client_instance_id": line["request"]["clientInstanceId"]})
        for line in push_lines[:4]
    ]
    headers = json.loads((golden / "plugin_headers.json").read_text(encoding="utf-8"))[ALONE]
    alone = (golden / "otlp" / "rdk-idem-alice.data.bin").read_bytes()
    records = topic([*again, (alone, headers)], "telemetry")
    receiver.write(records, Batch(warehouse, "receiver", "q2", 0))
    observed.append(decode(spark, conf, warehouse))
    collector = ingest.of_collector(conf, "cluster")
    real = [line for line in push_lines if line["requestHeader"]["clientId"] != "raw-telemetry"]
    sent = [in_collector(data_of(line), context(line)) for line in real]
    unknown = in_collector(alone, headers | {"client_instance_id": BY_COLLECTOR})
    batches = [(b"".join([*sent, unknown]), {}), (sent[-1], {})]
    collector.write(topic(batches, "otlp"), Batch(warehouse, "otlp", "q3", 0))
    otlp_on = conf.ingest.model_copy(update={"otlp_topic": "otlp"})
    observed.append(decode(spark, conf.model_copy(update={"ingest": otlp_on}), warehouse))
    rows = [row.asDict() for row in warehouse.read(spark, "client_metrics").collect()]
    progress = warehouse.read(spark, "pipeline_progress").where("job = 'client_metrics'")
    return Run(rows, observed, [row.asDict() for row in progress.collect()])


def context(line: dict[str, Any]) -> dict[str, str]:
    """The context of a push that an exporter in the broker has."""
    header, software = line["requestHeader"], line["clientInformation"]
    return {
        "client_instance_id": line["request"]["clientInstanceId"],
        "principal": line["principal"],
        "client_id": header["clientId"],
        "client_software_name": software["softwareName"],
        "broker_id": "7",
    }


def in_collector(payload: bytes, attributes: dict[str, str]) -> bytes:
    """The payload with its context in every resource."""
    sent = MetricsData.FromString(payload)
    for resource in sent.resource_metrics:
        for key, text in attributes.items():
            resource.resource.attributes.add(key=key).value.string_value = text
    return sent.SerializeToString()


def bad(push: dict[str, Any]) -> list[bytes]:
    """An unreadable push, and an empty one: neither has a point."""
    return [pushing(push, b"\xff\xff"), pushing(push, b"")]


def data_of(line: dict[str, Any]) -> bytes:
    payload = base64.b64decode(line["request"]["metrics"])
    return zstandard.ZstdDecompressor().decompressobj().decompress(payload)


def decode(spark: SparkSession, conf: config.Conf, warehouse: Warehouse) -> dict[str, int]:
    """Run the job's query once over what is new; returns its observed counts."""
    pushes = sources.read_table(spark, conf.results, warehouse, "telemetry_pushes")
    once = client_metrics.each_push_once(pushes, conf.results.max_lateness_s)
    write = client_metrics.PointIngest(conf).write
    query = sinks.start(once, "client_metrics", warehouse, write, sinks.ONCE)
    assert query.awaitTermination(300)
    counts = Counter[str]()
    for progress in query.recentProgress:
        unique = progress["observedMetrics"].get(client_metrics.UNIQUE)
        counts[client_metrics.UNIQUE] += unique["rows"] if unique else 0
    return dict(counts)


def points_of(payload: bytes) -> set[Point]:
    """The gauges and sums of a payload, as the protobuf library reads them."""
    return {
        (
            metric.name,
            metric.WhichOneof("data"),
            point.as_double if point.HasField("as_double") else float(point.as_int),
            time_of(point.time_unix_nano),
            time_of(point.start_time_unix_nano),
            tags(point.attributes),
            tags(resource.resource.attributes),
        )
        for resource in MetricsData.FromString(payload).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in getattr(metric, metric.WhichOneof("data") or "").data_points
    }


def time_of(ns: int) -> datetime | None:
    return EPOCH + timedelta(microseconds=ns // 1_000) if ns else None


def tags(attributes: Any) -> tuple[tuple[str, str], ...]:
    def text(pair: KeyValue) -> str:
        kind = pair.value.WhichOneof("value")
        assert kind in {"string_value", "int_value"}, kind
        return str(getattr(pair.value, kind))

    return tuple(sorted((pair.key, text(pair)) for pair in attributes))


def shown(row: dict[str, Any]) -> Point:
    def utc(time: datetime | None) -> datetime | None:
        return time.astimezone(UTC) if time else None

    maps = (tuple(sorted(row[name].items())) for name in ("attributes", "resource"))
    times = (utc(row["event_time"]), utc(row["start_time"]))
    value = row["value"] if row["value"] is not None else float(row["value_int"])
    return (row["metric"], row["kind"], value, *times, *maps)


def comparable(points: set[Point]) -> list[str]:
    """As text, in which NaN equals NaN."""
    return sorted(map(repr, points))


def of_clients(push_lines: list[dict[str, Any]]) -> dict[str, set[Point]]:
    """Points by client instance, of the pushes a real client library made."""
    points: dict[str, set[Point]] = {}
    for line in push_lines:
        if line["requestHeader"]["clientId"] != "raw-telemetry":
            instance = line["request"]["clientInstanceId"]
            points.setdefault(instance, set()).update(points_of(data_of(line)))
    return points


def test_rows_are_the_points_protobuf_reads(run: Run, push_lines: list[dict[str, Any]]) -> None:
    clients = of_clients(push_lines)
    assert len(clients) >= 5
    for instance, points in clients.items():
        rows = [row for row in run.rows if row["client_instance_id"] == instance]
        assert comparable({shown(row) for row in rows}) == comparable(points)


def test_the_same_push_counts_once_on_two_routes_and_in_two_batches(
    run: Run, push_lines: list[dict[str, Any]]
) -> None:
    named = ("client_instance_id", "payload_sha256", "metric", "event_time", "start_time")
    keys = Counter(
        (*(row[name] for name in named), repr(row["attributes"]), repr(row["resource"]))
        for row in run.rows
    )
    assert keys.most_common(1)[0][1] == 1
    distinct = {
        (line["request"]["clientInstanceId"], line["request"]["metrics"])
        for line in push_lines
        if line["response"]["errorCode"] not in {76, 87}
    }
    # Beside them the empty one; in the second run only what no request-log line had brought.
    unique = [observed[client_metrics.UNIQUE] for observed in run.observed]
    assert unique[1] == 1
    assert GOLDEN_ACCEPTED < unique[0] <= len(distinct) + 1
    written = sum(row["row_count"] for row in run.reported if row["outcome"] == "out")
    assert written == len(run.rows)


def test_a_collector_s_batch_adds_only_points_that_are_not_there(run: Run, golden: Path) -> None:
    rows = [row for row in run.rows if row["client_instance_id"] == BY_COLLECTOR]
    assert comparable({shown(row) for row in rows}) == comparable(
        points_of((golden / "otlp" / "rdk-idem-alice.data.bin").read_bytes())
    )
    ids = Counter((row["series_id"], row["event_time"], row["start_time"]) for row in run.rows)
    assert ids.most_common(1)[0][1] == 1
    (left_out,) = [row for row in run.reported if row["reason"] == "same_point"]
    assert left_out["row_count"] > len(rows)


@pytest.mark.faults
def test_connections_of_one_node_id_stay_beside_a_collector(
    spark: SparkSession, topic: Callable[..., DataFrame], golden: Path, tmp_path: Path
) -> None:
    """librdkafka gives all but its brokers the node.id -1."""
    folder = config.WarehouseSection(path=str(tmp_path))
    warehouse = Warehouse(folder)
    warehouse.ensure(lambda: spark, MADE)
    conf = config.Conf(warehouse=folder, ingest=config.IngestSection(otlp_topic="otlp"))
    headers = json.loads((golden / "plugin_headers.json").read_text(encoding="utf-8"))[ALONE]
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="latency")
    for latency_ms in (1.5, 2.5, 1.5):
        point = metric.gauge.data_points.add(as_double=latency_ms, time_unix_nano=1)
        point.attributes.add(key="node.id").value.int_value = -1
    receiver = ingest.of_receiver(conf, "cluster")
    records = topic([(data.SerializeToString(), headers)], "telemetry")
    receiver.write(records, Batch(warehouse, "receiver", "q", 0))
    decode(spark, conf, warehouse)
    rows = warehouse.read(spark, "client_metrics").collect()
    assert sorted(row["value"] for row in rows) == [1.5, 2.5]


def test_a_clock_far_off_makes_a_batch_look_for_the_same_points_in_few_places(
    spark: SparkSession,
) -> None:
    now = datetime(2026, 7, 1, 12, tzinfo=UTC)
    times = [now, now + timedelta(seconds=30), EPOCH, EPOCH + timedelta(microseconds=1)]
    points = spark.createDataFrame([(time,) for time in times], "event_time timestamp")
    last = timedelta(microseconds=1)
    assert client_metrics.time_ranges_of(points) == [
        TimeRange(EPOCH, EPOCH + 2 * last),
        TimeRange(now, now + timedelta(seconds=30) + last),
    ]


@pytest.fixture(params=[pytest.param(each, marks=pytest.mark.faults) for each in (None, "otlp")])
def conf(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> config.Conf:
    """Of a warehouse of its own, without and with a Collector's topic."""
    folder = config.WarehouseSection(path=str(tmp_path))
    Warehouse(folder).ensure(lambda: spark, MADE)
    return config.Conf(warehouse=folder, ingest=config.IngestSection(otlp_topic=request.param))


@contextmanager
def reports_that_fail() -> Iterator[None]:
    def cut_off(*_: object) -> None:
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batch, "report", cut_off)
        yield


def test_a_batch_cut_off_after_its_append_is_told_once_and_the_next_one_works(
    conf: config.Conf,
    spark: SparkSession,
    topic: Callable[..., DataFrame],
    push_lines: list[dict[str, Any]],
) -> None:
    warehouse = Warehouse(conf.warehouse)
    log = ingest.of_request_log(conf, "cluster")
    lines = [encoded(line) for line in push_lines]
    log.write(topic(lines[:4]), Batch(warehouse, "log", "q1", 0))
    with reports_that_fail(), pytest.raises(StreamingQueryException):
        decode(spark, conf, warehouse)
    appended = warehouse.read(spark, "client_metrics").count()
    assert appended > 0
    decode(spark, conf, warehouse)
    assert warehouse.read(spark, "client_metrics").count() == appended
    assert counts(spark, warehouse) == {("out", None): appended}
    log.write(topic(lines), Batch(warehouse, "log", "q1", 1))
    decode(spark, conf, warehouse)
    written = warehouse.read(spark, "client_metrics").count()
    assert written > appended
    assert counts(spark, warehouse)["out", None] == written


def of_push(spark: SparkSession, warehouse: Warehouse) -> Counter[str]:
    """Every point, without the columns that differ between two equal pushes."""
    rows = warehouse.read(spark, "client_metrics").drop("record_time", *LOG_COLUMNS).collect()
    return Counter(repr(row) for row in rows)


@pytest.mark.faults
def test_a_rebuild_decodes_a_push_of_two_routes_once_as_the_log_tells_it(
    conf: config.Conf,
    spark: SparkSession,
    topic: Callable[..., DataFrame],
    push_lines: list[dict[str, Any]],
) -> None:
    warehouse = Warehouse(conf.warehouse)
    again = [
        (data_of(line), {"client_instance_id": line["request"]["clientInstanceId"]})
        for line in push_lines[:4]
    ]
    # The receiver's first, so that theirs are the points that streaming kept.
    receiver = ingest.of_receiver(conf, "cluster")
    receiver.write(topic(again, "telemetry"), Batch(warehouse, "receiver", "q2", 0))
    decode(spark, conf, warehouse)
    log = ingest.of_request_log(conf, "cluster")
    log.write(topic(map(encoded, push_lines)), Batch(warehouse, "log", "q1", 0))
    decode(spark, conf, warehouse)
    streamed = of_push(spark, warehouse)
    assert streamed.most_common(1)[0][1] == 1
    assert warehouse.read(spark, "client_metrics").where("listener IS NULL").count() > 0
    batch = Batch(warehouse, "rebuild", "r", 0)
    written = client_metrics.PointIngest(conf).replace(spark, batch, TimeRange(RECORD_TIME))
    assert of_push(spark, warehouse) == streamed
    assert written == {"cluster": streamed.total()}
    assert warehouse.read(spark, "client_metrics").where("listener IS NULL").count() == 0


def counts(spark: SparkSession, warehouse: Warehouse) -> dict[tuple[str, str | None], int]:
    """Rows by outcome and reason that the job reported."""
    counts = Counter[tuple[str, str | None]]()
    progress = warehouse.read(spark, "pipeline_progress").where("job = 'client_metrics'")
    for row in progress.collect():
        counts[row["outcome"], row["reason"]] += row["row_count"]
    return dict(counts)


def test_columns_of_the_push_come_with_each_point(
    run: Run, push_lines: list[dict[str, Any]], golden: Path
) -> None:
    headers = json.loads((golden / "plugin_headers.json").read_text(encoding="utf-8"))[ALONE]
    instance = headers["client_instance_id"]
    alone = [row for row in run.rows if row["client_instance_id"] == instance]
    assert comparable({shown(row) for row in alone}) == comparable(
        points_of((golden / "otlp" / "rdk-idem-alice.data.bin").read_bytes())
    )
    assert {row["principal"] for row in alone} == {headers["principal"]}
    line = push_lines[0]
    rows = [row for row in run.rows if row["client_id"] == line["requestHeader"]["clientId"]]
    assert rows
    assert {(row["client_software_version"], row["broker_id"]) for row in rows} == {("4.3.1", 7)}
    assert all(row["accepted"] for row in rows)


def test_points_of_a_rejected_push_say_so(run: Run, push_lines: list[dict[str, Any]]) -> None:
    """A broker answered 42, 89 or 117: the client's points are there, and marked."""
    accepted: dict[str, set[bool]] = {}
    for line in push_lines:
        if points_if_any(line):
            instance = line["request"]["clientInstanceId"]
            accepted.setdefault(instance, set()).add(line["response"]["errorCode"] == 0)
    accepted_by_push: dict[str, set[bool]] = {}
    for row in run.rows:
        accepted_by_push.setdefault(row["client_instance_id"], set()).add(row["accepted"])
    assert {instance: accepted_by_push[instance] for instance in accepted} == accepted


def points_if_any(line: dict[str, Any]) -> bool:
    return line["requestHeader"]["clientId"] != "raw-telemetry" and bool(points_of(data_of(line)))
