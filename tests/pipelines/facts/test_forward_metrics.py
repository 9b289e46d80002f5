"""Points of clients to a receiver of OTLP: each at least once, and each is counted."""

import gzip
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urllib3
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from pyspark.sql import SparkSession

from quotaflow.demo.ports import free_ports
from quotaflow.pipelines import config
from quotaflow.pipelines.errors import ConfigError, JobError
from quotaflow.pipelines.facts import forward_metrics
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.monitoring import health
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import CLIENT_METRICS

from ...cases import cases
from ...delta_tables import NOON
from ...http_endpoint import Endpoint, listening
from ...live import fetched, logged_process
from ...rows import KAFKA, Row, gauge
from .test_otlp_receiver import partly

PROMETHEUS = "github.com/prometheus/prometheus/cmd/prometheus@v0.316.0"
LAG, SENT = "consumer.lag", "producer.sent_%"


@cases(
    ("pattern", "expected"),
    ("plain", "a.b", "a.b"),
    ("any text", "a.*", "a.%"),
    ("what LIKE has of its own", "a_b%c\\d*", r"a\_b\%c\\d%"),
)
def test_a_pattern_matches_as_in_other_keys_of_conf(pattern: str, expected: str) -> None:
    assert forward_metrics._like(pattern) == expected


def test_a_run_of_all_jobs_gives_up_what_the_job_has_not_sent_if_it_is_off(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = warehouse.checkpoint("forward_metrics")
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "q"}', encoding="utf-8")

    def ends(*_: object) -> None:
        raise JobError("before Spark")

    monkeypatch.setattr(runner, "_check_state", ends)
    place = f"warehouse.path={warehouse.conf.folder}"
    for on, names, stays, reported in (
        ("{url: 'https://c/'}", [], True, 0),
        ("null", ["metric_alerts"], True, 0),
        ("null", [], False, 1),
        ("null", [], False, 0),
    ):
        conf = config.load(overrides=[place, f"monitoring.forward={on}"])
        lines: list[str] = []
        with pytest.raises(JobError):
            runner.run(conf, names, None, lines.append)
        assert (checkpoint.exists(), len(lines)) == (stays, reported)


def test_a_secret_that_is_missing_ends_the_run_before_anything_starts(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Warehouse, "lock", lambda _: pytest.fail("a job may start"))
    forward = "{url: 'https://c/', headers: {Authorization: 'env:NO_SUCH'}}"
    conf = config.load(
        overrides=[f"warehouse.path={warehouse.conf.folder}", f"monitoring.forward={forward}"]
    )
    with pytest.raises(ConfigError, match="NO_SUCH is not set"):
        runner.run(conf, [], None, print)


class Scene:
    """Tables, a receiver, and what a run sends there."""

    def __init__(self, spark: SparkSession, place: dict[str, Any], server: Endpoint) -> None:
        self.spark, self.server = spark, server
        self.given: dict[str, Any] = {"url": server.url, "max_attempts": 1}
        self.place = [f"warehouse.{key}={value}" for key, value in place.items()]
        self.warehouse = Warehouse(config.load(overrides=self.place).warehouse)
        self.warehouse.ensure(lambda: spark, [CLIENT_METRICS])
        self.lines: list[str] = []

    def add(self, *rows: Row, age_s: float = 1) -> None:
        at = datetime.now(UTC) - timedelta(seconds=age_s)
        made = [each | {"record_time": at} for each in rows]
        table = pa.Table.from_pylist(made, schema=CLIENT_METRICS.arrow)
        frame = self.spark.createDataFrame(table)
        self.warehouse.write(frame.write.format("delta").mode("append"), CLIENT_METRICS.name)

    def conf(self, **others: Any) -> config.Conf:
        forward = repr({**self.given, **others})
        return config.load(overrides=[*self.place, f"monitoring.forward={forward}"])

    def run(self, **others: Any) -> tuple[list[tuple[str, float]], dict[Any, int]]:
        """Run the job: the client and value of each point that came, and how many counts grew."""
        self.server.came.clear()
        self.lines.clear()
        before = self.counts()
        runner.run(self.conf(**others), ["forward_metrics"], None, self.report)
        bodies = (gzip.decompress(body) for _, _, body in self.server.came)
        came = [each for body in bodies for each in values(body)]
        return came, dict(Counter(self.counts()) - Counter(before))

    def report(self, line: Any) -> None:
        self.lines.append(str(line))

    def counts(self) -> dict[Any, int]:
        if not self.warehouse.exists(self.spark, "pipeline_progress"):
            return {}
        read = self.warehouse.read(self.spark, "pipeline_progress").groupBy("outcome", "reason")
        return {(row[0], row[1]): row[2] for row in read.sum("row_count").collect()}


def values(body: bytes) -> Iterator[tuple[str, float]]:
    for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        tags = {each.key: each.value.string_value for each in of_resource.resource.attributes}
        for scope in of_resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.gauge.data_points:
                    yield tags["kafka.client.id"], point.as_double


@pytest.fixture
def scene(spark: SparkSession, tmp_path: Path) -> Iterator[Scene]:
    with listening("/v1/metrics") as server:
        yield Scene(spark, {"path": tmp_path / "warehouse"}, server)


@pytest.mark.spark
def test_each_point_is_sent_or_counted(scene: Scene) -> None:
    of_lag = {"metrics": [f"{KAFKA}consumer.*"]}
    scene.add(
        gauge(2, LAG, 2.0),
        gauge(1, LAG, 1.0),
        gauge(2, LAG, 3.0, client_id="other", client_instance_id="i2"),
        gauge(2, LAG, 4.0, topic="my_topic", is_topic_twin=True),
        gauge(2, SENT, 5.0),
        # The next push covers the same time.
        gauge(2, LAG, 8.0, accepted=False),
        gauge(2, LAG, 9.0, client_instance_id=None),
    )
    scene.add(gauge(0, LAG, 6.0), age_s=4_000)
    came, counts = scene.run(**of_lag)
    assert [value for client, value in came if client == "orders"] == [1.0, 2.0]
    assert sorted(came) == [("orders", 1.0), ("orders", 2.0), ("other", 3.0)]
    reasons = ("topic_twin", "not_selected", "before_first_run", "rejected", "no_client")
    left_out = {("left_out", why): 1 for why in reasons}
    assert counts == {("in", None): 8, ("out", None): 3, **left_out}
    assert scene.run(**of_lag) == ([], {})
    # Down: the run goes on without it, and the next one sends the batch.
    scene.add(gauge(9, LAG, 7.0), gauge(9.5, SENT, 8.0))
    scene.server.status = 503
    came, counts = scene.run(**of_lag)
    assert (came, counts) == ([("orders", 7.0)], {})
    (line,) = [line for line in scene.lines if "503" in line]
    assert line.endswith(
        "the receiver of monitoring.forward answered 503 each time; "
        "its batch is sent again in the next run"
    )
    assert scene.server.url not in "".join(scene.lines)
    scene.add(gauge(10, LAG, 11.0))
    (job,) = health.read(scene.conf(), datetime.now(UTC)).jobs
    assert (job.behind_s or 0) > 0
    scene.server.status = 200
    scene.server.body = partly(1)
    came, counts = scene.run()
    assert came == [("orders", 7.0), ("orders", 8.0), ("orders", 11.0)]
    assert counts == {("in", None): 3, ("out", None): 1, ("refused", "partial_success"): 2}
    scene.add(gauge(14, SENT, 9.0), age_s=3)
    assert scene.run(max_age_s=2) == ([], {("in", None): 1, ("late", "past_max_age"): 1})
    (job,) = health.read(scene.conf(), datetime.now(UTC)).jobs
    assert (job.rows_refused, job.rows_late) == (2, 1)


@pytest.mark.spark
@pytest.mark.faults
def test_a_slow_receiver_takes_no_longer_than_conf_says(scene: Scene) -> None:
    most = 5_000
    scene.add(*(gauge(0, f"m{number}", 1.0) for number in range(most + 3)))
    scene.server.before = lambda: time.sleep(1.2)
    came, counts = scene.run(max_batch_s=1)
    assert len(came) == counts["out", None] == most
    assert counts["late", "past_max_batch"] == 3


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that takes points by OTLP, without a rule or target."""
    program = fetched.from_go(PROMETHEUS, "-tags", "remove_all_sd")
    (conf := tmp_path / "prometheus.yml").write_text("", encoding="utf-8")
    (ports,) = free_ports(1, random.SystemRandom())
    place = f"127.0.0.1:{ports.client}"
    options = {"config.file": conf, "storage.tsdb.path": tmp_path / "tsdb"}
    options |= {"web.listen-address": place}
    command = [program, "--web.enable-otlp-receiver", *(f"--{k}={v}" for k, v in options.items())]
    with logged_process.logging(
        command, tmp_path / "prometheus.log", b"ready to receive web requests"
    ):
        yield f"http://{place}"


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.timeout(3_600)  # the first run builds the program
def test_prometheus_takes_points_of_a_catalog(
    spark: SparkSession, catalog: Warehouse, prometheus: str
) -> None:
    kept = catalog.conf
    place = {"catalog_schema": kept.catalog_schema, "checkpoints": kept.checkpoints}
    with listening() as unused:
        scene = Scene(spark, place, unused)
        scene.add(
            gauge(1, LAG, 1.0), gauge(2, LAG, 3.0), gauge(2, LAG, 4.0, client_instance_id="i2")
        )
        _, counts = scene.run(url=f"{prometheus}/api/v1/otlp/v1/metrics")
    assert counts == {("in", None): 3, ("out", None): 3}
    at = (NOON + timedelta(seconds=3)).isoformat()
    fields = {"query": '{__name__=~".*consumer_lag.*"}', "time": at}
    answer = urllib3.request("GET", f"{prometheus}/api/v1/query", fields=fields).json()
    series = answer["data"]["result"]
    assert sorted(each["value"][1] for each in series) == ["3", "4"]
