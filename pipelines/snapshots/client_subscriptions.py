"""`client_subscriptions`: what resources give each client, beside what it got (KIP-714)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.pipelines.snapshots.changes import newest_of
from quotaflow.pipelines.snapshots.observations import ObservedRows, Row
from quotaflow.pipelines.snapshots.snapshot import Snapshot, left_out
from quotaflow.pipelines.streaming.sinks import Count
from quotaflow.pipelines.warehouse import row_writer
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import EVER
from quotaflow.schemas.configs import CLIENT_METRICS
from quotaflow.schemas.table import TIMESTAMP
from quotaflow.schemas.tables.declared import CLIENT_SUBSCRIPTIONS, CONFIGS, TELEMETRY_SUBSCRIPTIONS
from quotaflow.udfs.rules.client_metrics import Client, Subscription, effective, matches

_TABLE = CLIENT_SUBSCRIPTIONS
SEEN_WITHIN = timedelta(days=1)
_CLIENT = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_address",
    "client_port",
)
_DELIVERED = ("requested_metrics", "push_interval_ms")
_READ = pa.schema(
    [f for f in TELEMETRY_SUBSCRIPTIONS.arrow if f.name in {*_TABLE.column_names, *_DELIVERED}]
)
_ADDED = pa.schema([field for field in _TABLE.arrow if field.name not in _READ.names])


def replace(snapshot: Snapshot, seen: ObservedRows) -> list[Count]:
    """Replace the rows of this cluster by the configs of its client-metrics resources.

    If a part of them is unanswered, the table stays as it is. A resource whose match cannot be
    evaluated outside Java is left out and counted.
    """
    if seen.unanswered:
        return left_out(_TABLE, seen.unanswered)
    resources = _by_name(seen.rows.to_pylist())
    subscriptions = evaluable(resources)
    rows = compared(_last_answers(snapshot), subscriptions, _last_change(snapshot), snapshot.now)
    replaced = Replaced([EVER], snapshot.is_of_cluster)
    row_writer.replace(snapshot.open_session, snapshot.batch.warehouse, _TABLE, rows, replaced)
    unread = len(resources) - len(subscriptions)
    return [
        Count("in", len(resources), _TABLE.name),
        Count("out", rows.num_rows, _TABLE.name),
        Count("left_out", unread, _TABLE.name, "match_not_evaluable"),
    ]


def _by_name(configs: Iterable[Row]) -> dict[str, dict[str, str]]:
    resources: dict[str, dict[str, str]] = defaultdict(dict)
    for each in configs:
        resources[each["entity_name"]][each["config_key"]] = each["config_value"]
    return resources


def evaluable(resources: Mapping[str, Mapping[str, str]]) -> list[Subscription]:
    """The resources whose match can be evaluated outside Java."""
    subscriptions = []
    for name, configs in resources.items():
        with suppress(ValueError):
            subscriptions.append(Subscription.from_configs(name, configs))
    return subscriptions


def _last_answers(snapshot: Snapshot) -> pa.Table:
    """The last good answer to each instance of this cluster within SEEN_WITHIN."""
    since = literal(snapshot.now - SEEN_WITHIN)
    is_recent = f"{snapshot.is_of_cluster} AND event_time > {since} AND error_code = 0"
    sql = newest_of(_READ.names, _TABLE.key, _TABLE.time, TELEMETRY_SUBSCRIPTIONS.name, is_recent)
    return snapshot.open_reader().read(sql, _READ)


def _last_change(snapshot: Snapshot) -> datetime | None:
    sql = (
        f"SELECT max(event_time) AS event_time FROM {CONFIGS.name} "
        f"WHERE {snapshot.is_of_cluster} AND entity_type = {literal(CLIENT_METRICS)}"
    )
    time: datetime | None = snapshot.open_reader().rows(sql)[0]["event_time"]
    return time


def compared(
    answers: pa.Table,
    subscriptions: Sequence[Subscription],
    changed_at: datetime | None,
    now: datetime,
) -> pa.Table:
    """Rows of the table: these answers, compared with what `subscriptions` predict.

    `changed_at` is when a snapshot last saw them change: an earlier answer may be of older ones.
    """
    # In Arrow: a wrong clock may give years that Python's datetime does not have.
    is_earlier = pc.less_equal(answers["event_time"], pa.scalar(changed_at, TIMESTAMP))
    columns = [*(answers[name] for name in (*_CLIENT, *_DELIVERED)), is_earlier]
    rows = [
        {"snapshot_time": now}
        | _comparison(subscriptions, Client(*client), metrics, interval_ms, earlier)
        for *client, metrics, interval_ms, earlier in zip(
            *(column.to_pylist() for column in columns), strict=True
        )
    ]
    added = pa.Table.from_pylist(rows, schema=_ADDED)
    parts = {name: added if name in _ADDED.names else answers for name in _TABLE.column_names}
    return pa.table({name: part[name] for name, part in parts.items()})


def _comparison(
    subscriptions: Sequence[Subscription],
    client: Client,
    metrics: list[str | None] | None,
    interval_ms: int | None,
    is_earlier: bool | None,
) -> dict[str, object]:
    """What a client was answered, and what it is given by the subscriptions that match it."""
    predicted, predicted_ms = effective(subscriptions, client)
    delivered = metrics and sorted(metrics, key=lambda name: (name is None, name or ""))
    is_as_predicted = (sorted(predicted), predicted_ms) == (delivered, interval_ms)
    otherwise = "pending" if is_earlier else "differs"
    return {
        "subscriptions": sorted(s.name for s in subscriptions if matches(s, client)),
        "predicted_metrics": sorted(predicted),
        "predicted_interval_ms": predicted_ms,
        "delivered_metrics": delivered,
        "delivered_interval_ms": interval_ms,
        "state": "as_predicted" if is_as_predicted else otherwise,
    }
