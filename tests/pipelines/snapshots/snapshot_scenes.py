"""Snapshots of made clusters, written into the tables of a folder or of a catalog."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from quotaflow.pipelines import config
from quotaflow.pipelines.kafka.cluster_state import ClusterState
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.snapshots.sections import ClusterObserver
from quotaflow.pipelines.snapshots.snapshot import Snapshot
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES

from ...delta_tables import NOON
from ...schemas.views.view_tables import no_session
from ..kafka.fake_cluster import CLIENT_METRICS, OF_RESOURCE, MadeCluster

CLUSTER = "c1"
NEEDED = ("topics", "configs", "telemetry_subscriptions", "requests", "pipeline_progress")
"""Tables that a snapshot of any table reads or fills."""
Resources = dict[str, dict[str, str]]
EVERY_S: Resources = {"all": {"metrics": "*", "interval.ms": "1000"}}


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def of_resources(resources: Resources) -> MadeCluster:
    """A cluster with these client-metrics resources."""
    return MadeCluster(
        configs={
            (CLIENT_METRICS, name): [(key, value, OF_RESOURCE) for key, value in values.items()]
            for name, values in resources.items()
        }
    )


@dataclass(frozen=True)
class Scene:
    """A warehouse into which snapshots of made clusters are written; its tables are made at first.

    `open_session` opens the session of a catalog.
    """

    section: config.WarehouseSection
    open_session: OpenSession = no_session

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.section)

    def make(self, *names: str) -> None:
        """Make tables."""
        self.warehouse.ensure(self.open_session, [TABLES[name] for name in names])

    def put(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to a table."""
        content = pa.Table.from_pylist(list(rows), schema=TABLES[name].arrow)
        row_writer.append(self.open_session, self.warehouse, TABLES[name], content)

    def snapshot(self, minute: int) -> Snapshot:
        """A snapshot that is taken some minutes after noon."""
        opened = partial(open_reader, config.Conf(warehouse=self.section), self.open_session)
        return Snapshot(self.warehouse, opened, self.open_session, CLUSTER, at(minute))

    def take(
        self,
        minute: int,
        cluster: MadeCluster,
        chosen: Sequence[Table],
        report: Callable[[str], None] = lambda _: None,
        elapsed: Callable[[], timedelta] = timedelta,
    ) -> int:
        """Write what changed in the chosen tables; the number of rows."""
        taken = self.snapshot(minute)
        topics_before = partial(take.current_topics, taken)
        observer = ClusterObserver(ClusterState(cluster), topics_before)
        return take.write(taken, observer, chosen, report, elapsed)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, in order."""
        tables = open_reader(config.Conf(warehouse=self.section), self.open_session)
        return sorted((tuple(row.values()) for row in tables.rows(sql)), key=repr)


def altered(minute: float, value: float | None, **others: Any) -> dict[str, Any]:
    """A request that set or removed a quota of a user's default client id."""
    user, key = others.pop("user", "u"), others.pop("key", "request_percentage")
    parts = [{"entityType": "user", "entityName": user}, {"entityType": "client-id"}]
    op = {"key": key, "value": value or 0.0, "remove": value is None}
    entries = [{"entity": parts, "ops": [op]}]
    request = {"entries": entries, "validateOnly": others.pop("dry", False)}
    result = {"errorCode": others.pop("code", 0), "entity": parts[::-1]}
    body = json.dumps({"request": request, "response": {"entries": [result]}})
    row = {"cluster_id": CLUSTER, "event_time": at(minute), "api": "ALTER_CLIENT_QUOTAS"}
    return row | {"principal": "User:admin", "body": body} | others


def answer(minute: float, **others: Any) -> dict[str, Any]:
    """An answer that gave a client instance its subscription."""
    client = {"client_instance_id": "i1", "client_id": "orders", "client_address": "10.0.0.1"}
    given = {"error_code": 0, "requested_metrics": ["*"], "push_interval_ms": 1_000}
    return {"cluster_id": CLUSTER, "event_time": at(minute)} | client | given | others
