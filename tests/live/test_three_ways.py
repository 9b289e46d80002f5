"""The same pushes by the request log, the receiver and a Collector's topic: the same points."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.jobs import runner
from quotaflow.schemas.tables.declared import CLIENT_METRICS, TELEMETRY_PUSHES
from quotaflow.udfs.otlp import decode

from . import quiet_clients
from .conftest import conf_of_scene

TOPIC = "otlp_metrics"
PUSHES_PER_BATCH = 7
BATCH_BYTES = 8 << 20
"""More than so many pushes of the busiest client take."""
CONTEXT = {
    "client_instance_id": "client_instance_id",
    "principal": "principal",
    "client_id": "client_id",
    "client_software_name": "client_software_name",
    "client_software_version": "client_software_version",
    "client_address": "client_source_address",
    "client_port": "client_source_port",
    "listener": "listener",
    "broker_id": "broker_id",
    "connection_id": "connection_id",
}
"""Column of telemetry_pushes -> the receiver's header, as an exporter puts it on the resource."""


def pushes(folder: Path, route: str) -> pa.Table:
    """Accepted pushes of the demo's clients by one route; raw ones have no times."""
    table = DeltaTable(folder / "telemetry_pushes").to_pyarrow_table()
    rows = table.to_pylist()
    kept = [
        index
        for index, row in enumerate(rows)
        if row["route"] == route and row["accepted"] and not row["client_id"].startswith("raw-")
    ]
    return table.take(kept)


def points(rows: list[dict[str, Any]], *left_out: str) -> Counter[str]:
    names = [name for name in CLIENT_METRICS.column_names if name not in left_out]
    return Counter(repr([row[name] for name in names]) for row in rows)


def decoded(table: pa.Table) -> list[dict[str, Any]]:
    """The points of pushes, by the decoder alone."""
    schema = TELEMETRY_PUSHES.arrow
    batches = table.select(schema.names).cast(schema).combine_chunks().to_batches()
    out = decode.decode_pushes(config.Conf().payloads.limits)(iter(batches))
    return [row for batch in out for row in batch.to_pylist()]


def once(table: pa.Table, among: set[tuple[str, str]]) -> pa.Table:
    """Of each push of `among` the first."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for index, key in enumerate(keys(table)):
        if key in among and key not in seen:
            seen.add(key)
            kept.append(index)
    return table.take(kept)


def keys(table: pa.Table) -> list[tuple[str, str]]:
    columns = (table.column(name).to_pylist() for name in ("client_instance_id", "payload_sha256"))
    return list(zip(*columns, strict=True))


@pytest.mark.shows("reads pushes from the request log, in each codec of Kafka")
def test_request_log_and_receiver_give_the_same_points(filled: Path) -> None:
    logged, received = pushes(filled, "request_log"), pushes(filled, "receiver")
    both = set(keys(logged)) & set(keys(received))
    # A throttled client may go before its last answer, which then is not in the log.
    assert len(both) > 0.95 * len(set(keys(received)))
    by_log, by_receiver = (decoded(once(table, both)) for table in (logged, received))
    assert len(by_log) > 1_000
    assert points(by_log, "record_time") == points(by_receiver, "record_time")


def collected(table: pa.Table) -> Iterator[bytes]:
    """What a Collector makes of pushes: several in a batch, their context on their resources."""
    for start in range(0, table.num_rows, PUSHES_PER_BATCH):
        batch = MetricsData()
        for push in table.slice(start, PUSHES_PER_BATCH).to_pylist():
            for resource_metrics in MetricsData.FromString(push["payload"]).resource_metrics:
                for column, header in CONTEXT.items():
                    if push[column] is not None:
                        attribute = resource_metrics.resource.attributes.add()
                        attribute.key = header
                        attribute.value.string_value = str(push[column])
                batch.resource_metrics.append(resource_metrics)
        yield batch.SerializeToString()


@pytest.fixture
def by_collector(
    filled: Path, cluster: LocalCluster, login: list[str], tmp_path: Path
) -> list[dict[str, Any]]:
    """The points of a warehouse that knows the receiver's pushes by a Collector alone."""
    cluster.create_topics([TOPIC], configs={"max.message.bytes": str(BATCH_BYTES)})
    values = collected(pushes(filled, "receiver"))
    quiet_clients.send(cluster, TOPIC, values, message_max_bytes=BATCH_BYTES)
    conf = conf_of_scene(login, tmp_path, None, f"ingest.otlp_topic={TOPIC}")
    runner.run(conf, ["ingest_otlp", "client_metrics"], None, lambda _: None)
    rows: list[dict[str, Any]] = (
        DeltaTable(tmp_path / "warehouse" / "client_metrics").to_pyarrow_table().to_pylist()
    )
    return rows


@pytest.mark.faults
@pytest.mark.shows("reads OTLP from a topic that a Collector fills")
def test_a_collector_gives_the_same_points(
    filled: Path, by_collector: list[dict[str, Any]]
) -> None:
    received = pushes(filled, "receiver")
    expected = decoded(once(received, set(keys(received))))
    left_out = ("record_time", "payload_sha256")
    assert len(by_collector) > 1_000
    assert points(by_collector, *left_out) == points(expected, *left_out)
