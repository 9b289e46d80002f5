"""One snapshot that is being written: its cluster, its time, and the rows it appends."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from quotaflow.pipelines.snapshots import changes
from quotaflow.pipelines.snapshots.observations import ObservedRows, UnansweredPart
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import Table

JOB = "snapshot"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Writes one snapshot: rows that an earlier one wrote are no change.

    `open_reader` opens the tables as they are now. Only tables that Spark must write need
    `open_session`.
    """

    warehouse: Warehouse
    open_reader: Callable[[], Reader]
    open_session: OpenSession
    cluster_id: str
    now: datetime

    @property
    def batch(self) -> Batch:
        """The batch that its rows are written in. No checkpoint: no run replays a snapshot."""
        time_ms = round(self.now.timestamp() * 1_000)
        return Batch(self.warehouse, JOB, JOB, time_ms, has_time_id=True)

    def append_changes(
        self, seen: ObservedRows, finish: Callable[[pa.Table], pa.Table] = lambda changed: changed
    ) -> list[Count]:
        """Append the rows that differ from the current rows of this cluster, after `finish`.

        `seen` has everything there is now, except its unanswered parts, which are counted.
        """
        table, came = seen.table, seen.rows.num_rows
        observed = seen.rows.append_column("cluster_id", pa.repeat(self.cluster_id, came))
        observed = observed.append_column("is_removed", pa.repeat(False, came))
        changed = changes.changes(
            observed, self.current_rows(table), table, self.now, seen.unanswered
        )
        if changed.num_rows:
            self.batch.append_rows(self.open_session, finish(changed), table)
        is_none = not came and not seen.is_unanswered
        in_count = Count("in", came, table.name, is_nothing_there=is_none)
        out_count = Count("out", changed.num_rows, table.name)
        return [in_count, out_count, *left_out(table, seen.unanswered)]

    def current_rows(self, table: Table) -> pa.Table:
        """The current rows of this cluster, by earlier snapshots."""
        sql = changes.newest_rows(table, table.name, self.is_of_cluster)
        return changes.current_rows(self.open_reader().read(sql, table.arrow))

    @property
    def is_of_cluster(self) -> str:
        """SQL that is true for rows of this cluster."""
        return f"cluster_id = {literal(self.cluster_id)}"


def left_out(table: Table, gaps: tuple[UnansweredPart, ...]) -> list[Count]:
    """The unanswered parts, counted by reason."""
    reasons = Counter(gap.reason for gap in gaps)
    return [Count("left_out", n, table.name, reason) for reason, n in sorted(reasons.items())]
