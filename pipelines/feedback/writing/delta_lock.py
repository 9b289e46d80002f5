"""A lock for warehouses in a catalog, where no OS lock reaches: a row of a Delta table.

Of two commits that read and wrote the same row Delta refuses one. The lock expires by itself, so a
run that was killed blocks others no longer than it could have worked.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from quotaflow.pipelines.errors import LockedError
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import FEEDBACK_LOCKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK_TTL = timedelta(hours=1)
_LAST_WRITES = timedelta(minutes=10)


def expiry_reason(since: datetime, now: datetime) -> str | None:
    """Why a holder since `since` may start no write now: the lock expires soon. None: it may."""
    if now - since < LOCK_TTL - _LAST_WRITES:
        return None
    return f"the lock of {since:%H:%M:%S} UTC ends soon: run it again for what is left"


@contextmanager
def acquired(
    spark: "SparkSession", warehouse: Warehouse, cluster_id: str, holder: str, now: datetime
) -> Iterator[None]:
    """Hold the lock of a cluster. `holder` is unique to this run. Raises LockedError."""
    warehouse.ensure(lambda: spark, [FEEDBACK_LOCKS])
    target = warehouse.target(FEEDBACK_LOCKS.name)
    _take(spark, target, cluster_id, holder, now)
    locks = spark.sql(f"SELECT * FROM {target} WHERE cluster_id = {literal(cluster_id)}")
    (lock,) = rows_of(locks.toArrow())
    if lock["holder"] != holder:
        raise LockedError(
            f"{lock['holder']} writes to cluster {cluster_id} until "
            f"{lock['until']:%Y-%m-%d %H:%M:%S} UTC at most: wait for it"
        )
    try:
        yield
    finally:
        spark.sql(f"DELETE FROM {target} WHERE holder = {literal(holder)}")


def _take(spark: "SparkSession", target: str, cluster_id: str, holder: str, now: datetime) -> None:
    # This import makes a local session raise Delta's conflicts as errors of pyspark. A session of
    # Spark Connect does so without it, and may lack the module.
    with suppress(ModuleNotFoundError):
        import delta.exceptions  # noqa: F401, PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415  not a base dependency

    try:
        spark.sql(f"""
            MERGE INTO {target} AS locks
            USING (SELECT
                {literal(cluster_id)} AS cluster_id, {literal(holder)} AS holder,
                {literal(now)} AS event_time, {literal(now + LOCK_TTL)} AS until
            ) AS ours
            ON locks.cluster_id = ours.cluster_id
            WHEN MATCHED AND locks.until <= {literal(now)} THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *
        """)
    except PySparkException as error:
        if "DELTA_CONCURRENT" not in str(error):
            raise
        raise LockedError(f"another process takes cluster {cluster_id} this moment") from None
