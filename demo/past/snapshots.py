"""Snapshots of the past, with what the cluster would have answered then.

The ordinary snapshot compares and writes the rows. Remote storage (KIP-405) is made up: the demo's
brokers have none.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from quotaflow.demo.past.week import Week
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.kafka.cluster_state import ClusterState
from quotaflow.pipelines.snapshots import client_quotas, take
from quotaflow.pipelines.snapshots.observations import ObservedRows, Row, collect
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.pipelines.snapshots.snapshot import Snapshot
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.declared import CLIENT_QUOTAS, PARTITION_OFFSETS

_OFFSETS_H = (144.0, 72.0, 24.0)
_LOCAL_H = 12.0
"""Older records than this are in remote storage alone."""

_SEEN_AFTER_MS = 5_000
"""When a snapshot saw a quota that was set."""


class _Answers(ClusterObserver):
    """Rows of one table, and nothing else."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__(ClusterState(_refuse), set)
        self._rows = rows

    def observed(self, table: Table) -> ObservedRows:
        """The given rows."""
        unknown = client_quotas.SETTER if table == CLIENT_QUOTAS else ()
        return collect(table, self._rows, unknown)


def take_all(conf: Conf, cluster_id: str, past: Week) -> None:
    """Where partitions of a topic with remote storage began and ended, then quotas as set."""
    for hours in _OFFSETS_H:
        ts_ms = past.clock.ago(hours)
        rows = past.offsets(ts_ms, past.clock.ago(hours + _LOCAL_H))
        _take(conf, cluster_id, ts_ms, PARTITION_OFFSETS, rows)
    for ts_ms, row in past.quotas():
        _take(conf, cluster_id, ts_ms + _SEEN_AFTER_MS, CLIENT_QUOTAS, [row])


def _take(conf: Conf, cluster_id: str, ts_ms: int, table: Table, rows: Sequence[Row]) -> None:
    warehouse = Warehouse(conf.warehouse)
    open_session = session.opener(session.short_lived(conf.spark), _say_nothing)
    opened = partial(open_reader, conf, open_session)
    time = datetime.fromtimestamp(ts_ms / 1e3, UTC)
    with warehouse.lock():
        warehouse.ensure(open_session, [table])
        snapshot = Snapshot(warehouse, opened, open_session, cluster_id, time)
        take.write(snapshot, _Answers(rows), [table], _say_nothing)


def _say_nothing(_: str) -> None:
    pass


def _refuse(request: object, broker_id: int | None) -> Mapping[str, object]:
    raise AssertionError(f"broker {broker_id} is of the past: {request}")
