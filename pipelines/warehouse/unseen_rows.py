"""Appends rows that follow from what a job read before, in a catalog too, which has no lock."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import pyarrow as pa

from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import TIMESTAMP, Table

_TRIES = 3


def append(
    open_session: OpenSession,
    warehouse: Warehouse,
    table: Table,
    rows: pa.Table,
    *,
    seen: Sequence[datetime | None],
    identity: Sequence[str],
) -> None:
    """Append rows; `seen` is the time of the newest row of the same identity that the job read.

    In a catalog a row is left out if a newer one than that came since: another job added it.
    `identity` are expressions of Spark's SQL with {} for the table. Raises JobError if delta-rs
    cannot write.
    """
    if not warehouse.conf.catalog_schema:
        row_writer.append(open_session, warehouse, table, rows)
        return
    # This import makes a local session raise Delta's conflicts as errors of pyspark.
    with suppress(ModuleNotFoundError):
        import delta.exceptions  # noqa: F401, PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415  not a base dependency

    spark, given = open_session(), f"quotaflow_{uuid.uuid4().hex}"
    with_seen = rows.append_column("seen", pa.array(seen, TIMESTAMP))
    frames.from_arrow(spark, with_seen).createOrReplaceTempView(given)
    is_same = " AND ".join(f"{each.format('old')} <=> {each.format('new')}" for each in identity)
    columns = ", ".join(table.column_names)
    merge = (
        f"MERGE INTO {warehouse.target(table.name)} AS old USING {given} AS new "
        f"ON {is_same} AND (new.seen IS NULL OR old.{table.time} > new.seen) "
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({columns})"
    )
    try:
        for left in reversed(range(_TRIES)):
            try:
                spark.sql(merge)
            except PySparkException as error:
                if not left or "DELTA_CONCURRENT" not in str(error):
                    raise
            else:
                return
    finally:
        spark.catalog.dropTempView(given)
