"""Pushes to files of `client_metrics`, written in Spark's tasks."""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import STRING, TIMESTAMP, sql_columns
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.decode import Batches, MapBatches, decode_pushes
from quotaflow.udfs.table_files import FILE, TableFile, Target, joined

WRITTEN = pa.schema([*FILE, pa.field("cluster_id", STRING), pa.field("newest", TIMESTAMP)])
"""A file of points: FILE, and cluster and record time of its newest point. A record may have no
time: then the time of its event decides."""
WRITTEN_SQL = sql_columns(WRITTEN)

_ROWS_PER_WRITE = 32_768


def write_points(limits: Limits, target: Target) -> MapBatches:
    """For mapInArrow: rows of telemetry_pushes in, WRITTEN out. The points of a task are one file.

    Raises OSError.
    """
    decode = decode_pushes(limits)

    def run(batches: Batches) -> Batches:
        newest: tuple[datetime, str | None] | None = None
        with TableFile(target) as file:
            for points in joined(decode(batches), _ROWS_PER_WRITE):
                file.write(pa.Table.from_batches([points]))
                newest = max(filter(None, (newest, _newest(points))), key=lambda each: each[0])
        row = file.described()
        if row is not None and newest is not None:
            named = row | {"newest": newest[0], "cluster_id": newest[1]}
            yield pa.RecordBatch.from_pylist([named], schema=WRITTEN)

    return run


def _newest(points: pa.RecordBatch) -> tuple[datetime, str | None]:
    """Record time and cluster of the newest of some points."""
    times = pc.coalesce(points.column("record_time"), points.column("event_time"))
    newest = pc.max(times)
    return newest.as_py(), points.column("cluster_id")[pc.index(times, newest).as_py()].as_py()
