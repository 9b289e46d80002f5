"""Of which cluster a warehouse is, for a run that reads tables alone and so asks no broker.

Whatever has rows is of their cluster; only looks that find nothing need to be told of one.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.streaming import identity
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNNAMED = "unknown"
"""What the first release wrote for the cluster of a run that read tables alone."""


def default_cluster_id(conf: Conf, warehouse: Warehouse, spark: "SparkSession") -> str | None:
    """The cluster conf names, else the only one whose topics were read, else the newest counted.

    None where nothing was ever read or counted.
    """
    if conf.kafka.cluster_id:
        return conf.kafka.cluster_id
    read = identity.cluster_ids(warehouse.conf.checkpoint_folder)
    if len(read) == 1:
        return read.pop()
    name = PIPELINE_PROGRESS.name
    if not warehouse.exists(spark, name):
        return None
    counted = warehouse.read(spark, name).where(F.col("cluster_id") != UNNAMED)
    newest = counted.agg(F.max_by("cluster_id", "event_time").alias("cluster_id")).collect()[0]
    return None if newest["cluster_id"] is None else str(newest["cluster_id"])
