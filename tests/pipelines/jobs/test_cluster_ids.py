"""Of which cluster rows are that a run counts which reads tables alone, and asks no broker."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs import job, runner
from quotaflow.pipelines.streaming import identity
from quotaflow.pipelines.streaming.identity import TopicIdentity
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import REQUESTS

from ...delta_tables import NOON, Fill
from ...udfs.fetch_rows import part

JOBS = ["client_metrics", "fetches"]


@pytest.fixture
def conf(tmp_path: Path) -> config.Conf:
    """Of a warehouse of its own; it names no cluster."""
    return config.load(overrides=[f"warehouse.path={tmp_path / 'warehouse'}"])


def read_topic(conf: config.Conf, job: str, cluster_id: str) -> None:
    """As if the job had read a topic of the cluster."""
    checkpoint = Warehouse(conf.warehouse).checkpoint(job)
    identity.check_topic(checkpoint, TopicIdentity(cluster_id, "logs", "id"), accept_new=False)


def fetched(cluster_id: str, second: int) -> dict[str, Any]:
    time = NOON.replace(second=second)
    return {
        "cluster_id": cluster_id,
        "broker_id": 1,
        "api": "FETCH",
        "event_time": time,
        "record_time": time,
        "client_id": "reader",
        "session_epoch": -1,
        "session_id": 0,
        "response_session_id": 0,
        "error_code": 0,
        "partitions": [part("a", 0, 5, 9)],
        "source_offset": second,
    }


@pytest.mark.spark
@pytest.mark.faults
def test_what_is_read_from_tables_counts_for_the_cluster_of_its_rows(
    spark: SparkSession, conf: config.Conf
) -> None:
    warehouse = Warehouse(conf.warehouse)
    warehouse.ensure(lambda: spark, [REQUESTS])
    read_topic(conf, "ingest_request_log", "c1")
    for second, cluster_id in enumerate(("c1", "c2")):
        rows = pa.Table.from_pylist([fetched(cluster_id, second)], schema=REQUESTS.arrow)
        frame = spark.createDataFrame(rows)
        warehouse.write(frame.write.format("delta").mode("append"), "requests")
        runner.run(conf, JOBS, None, lambda _: None)

    def counted_in(table: str) -> set[tuple[str, int | None, str]]:
        read = warehouse.read(spark, table).select("job", "batch_id", "cluster_id")
        return {(job, batch_id, cluster) for job, batch_id, cluster in read.collect()}

    counted = {
        (job, n, row_cluster) for job in JOBS[1:] for n, row_cluster in ((0, "c1"), (1, "c2"))
    }
    assert counted_in("pipeline_progress") == counted
    assert counted_in("query_progress") == {*counted, ("client_metrics", None, "c1")}


def test_a_look_that_finds_nothing_is_of_what_is_known_best(
    conf: config.Conf, fill: Fill, warehouse: Warehouse
) -> None:
    assert conf.warehouse.folder == warehouse.conf.folder

    def default_cluster() -> str | None:
        return job.default_cluster_id(conf, open_reader(conf))

    fill("pipeline_progress", [])
    assert default_cluster() is None
    counts = [("c2", NOON), ("c3", NOON.replace(hour=13)), (None, datetime.now(UTC))]
    fill(
        "pipeline_progress",
        [{"cluster_id": cluster, "event_time": time} for cluster, time in counts],
    )
    assert default_cluster() == "c3"
    read_topic(conf, "ingest_request_log", "c1")
    assert default_cluster() == "c1"
    read_topic(conf, "ingest_receiver", "c2")
    assert default_cluster() == "c3"
    conf = config.load(overrides=["kafka.cluster_id=c4"])
    assert default_cluster() == "c4"
