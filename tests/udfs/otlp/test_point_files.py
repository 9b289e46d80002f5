"""Points that tasks write are those that they would return."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from quotaflow.schemas import ddl
from quotaflow.schemas.tables.declared import CLIENT_METRICS, TELEMETRY_PUSHES
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.decode import decode_pushes
from quotaflow.udfs.otlp.point_files import WRITTEN, write_points
from quotaflow.udfs.table_files import Target

from ...delta_tables import NOON


def target(folder: Path) -> Target:
    return Target(
        CLIENT_METRICS.name, str(folder), CLIENT_METRICS.arrow, ddl.lookup_key(CLIENT_METRICS)
    )


def pushes(golden: Path) -> list[pa.RecordBatch]:
    """Batches of one push each, the newest in the middle and of another cluster."""
    payload = (golden / "otlp" / "rdk-idem-alice.data.bin").read_bytes()
    rows = [
        {
            "cluster_id": cluster,
            "event_time": NOON,
            "record_time": time,
            "client_instance_id": f"i{number}",
            "compression": "none",
            "payload": payload,
        }
        for number, (cluster, time) in enumerate(
            [("a", None), ("b", NOON + timedelta(days=9)), ("a", NOON)]
        )
    ]
    return pa.Table.from_pylist(rows, schema=TELEMETRY_PUSHES.arrow).to_batches(max_chunksize=1)


def test_a_task_writes_the_points_that_it_would_return(golden: Path, tmp_path: Path) -> None:
    returned = pa.Table.from_batches(decode_pushes(Limits())(iter(pushes(golden))))
    (written,) = write_points(Limits(), target(tmp_path))(iter(pushes(golden)))
    (row,) = written.to_pylist()
    file = tmp_path / row["path"]
    assert pq.read_table(file).cast(CLIENT_METRICS.arrow).equals(returned)
    assert pq.read_metadata(file).num_row_groups == 1
    assert written.schema == WRITTEN
    assert (row["rows"], row["cluster_id"]) == (returned.num_rows, "b")
    assert row["newest"] == NOON + timedelta(days=9)


def test_pushes_without_points_make_no_file(golden: Path, tmp_path: Path) -> None:
    empty = pa.table({**pushes(golden)[0].to_pydict(), "payload": [b""]}, TELEMETRY_PUSHES.arrow)
    for batches in ([], empty.to_batches()):
        assert not list(write_points(Limits(), target(tmp_path))(iter(batches)))
    assert not list(tmp_path.iterdir())
