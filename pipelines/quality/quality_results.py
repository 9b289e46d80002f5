"""The table quality_results: the results of all runs, and the current ones."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.quality.new_rows import LastCheck
from quotaflow.pipelines.quality.suites import CRITICAL
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.tables.declared import QUALITY_RESULTS

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


def last_checks(tables: Reader) -> dict[str, LastCheck]:
    """The last check of each table, by its name."""
    return {row.pop("suite"): LastCheck(**row) for row in tables.rows(_LAST)}


def keep(open_session: OpenSession, warehouse: Warehouse, rows: Sequence[Row]) -> None:
    """Append the results of a run, in one commit."""
    content = pa.Table.from_pylist(list(rows), schema=QUALITY_RESULTS.arrow)
    row_writer.append(open_session, warehouse, QUALITY_RESULTS, content)
