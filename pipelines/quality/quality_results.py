"""The table quality_results: the results of all runs, and the current ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.quality.new_rows import LastCheck
from quotaflow.pipelines.quality.suites import CRITICAL
from quotaflow.pipelines.warehouse import row_writer, spark_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.declared import QUALITY_RESULTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
_LAST = f"""
    SELECT
        suite,
        max(event_time) AS at,
        max(from_time) AS from_time,
        max(until_time) AS until,
        max(CASE WHEN NOT success AND severity = '{CRITICAL}' THEN 1 ELSE 0 END) = 1 AS is_critical
    FROM current_quality
    GROUP BY suite
"""


@dataclass(frozen=True, slots=True)
class QualityResults:
    """The results in a warehouse."""

    spark: "SparkSession"
    warehouse: Warehouse

    def last(self) -> dict[str, LastCheck]:
        """The last check of each table, by its name."""
        spark_reader.register(self.spark, self.warehouse, _LAST)
        rows: list[Row] = self.spark.sql(_LAST).toArrow().to_pylist()
        return {row.pop("suite"): LastCheck(**row) for row in rows}

    def keep(self, rows: Sequence[Row]) -> None:
        """Append the results of a run, in one commit."""
        content = pa.Table.from_pylist(list(rows), schema=QUALITY_RESULTS.arrow)
        row_writer.append(lambda: self.spark, self.warehouse, QUALITY_RESULTS, content)
