"""What conf says of writes to the cluster: where, under which name, and what stops them."""

from dataclasses import dataclass
from pathlib import Path

from quotaflow.pipelines.config import (
    FeedbackSection,
    KafkaSection,
    SparkSection,
    WarehouseSection,
)


@dataclass(frozen=True, slots=True)
class WriteConf:
    """The cluster that is written to, and the tables that record it.

    While `stop_file` is there nothing is written.
    """

    kafka: KafkaSection
    feedback: FeedbackSection
    warehouse: WarehouseSection
    spark: SparkSection
    stop_file: Path
