"""The limits of a client (`quotaflow why`): quotas, usage, and who shares them."""

import difflib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines.errors import QuotaflowError
from quotaflow.pipelines.warehouse.reader import Reader, one_cluster
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import TimeRange

_MAX_NAMES, _MAX_CLIENTS, _MAX_SHARERS = 10_000, 20, 5
Row = dict[str, Any]

_NEWEST = (
    "SELECT event_time AS newest, rolled_up_s FROM quota_usage "
    "WHERE {of_cluster} AND {is_named} AND {by_then} "
    "ORDER BY event_time DESC, rolled_up_s DESC NULLS LAST LIMIT 1"
)
_CLUSTERS = "SELECT DISTINCT cluster_id FROM quota_usage WHERE cluster_id IS NOT NULL"
_NAMES = (
    "SELECT DISTINCT {column} AS name FROM quota_usage WHERE {of_cluster} AND {column} IS NOT NULL "
    f"ORDER BY name LIMIT {_MAX_NAMES}"
)
_CLIENTS = (
    "SELECT principal, client_id, client_software_name, client_software_version, "
    "count(DISTINCT client_address) AS hosts, min(client_address) AS a_host, "
    "CAST(sum(coalesce(weight, 1)) AS BIGINT) AS requests "
    "FROM requests WHERE {of_cluster} AND {is_named} AND {in_range} AND replica_id IS NULL "
    "GROUP BY principal, client_id, client_software_name, client_software_version "
    f"ORDER BY requests DESC LIMIT {_MAX_CLIENTS}"
)
# The fullest window of a kind of quota is shown, because it is what throttles. The cause may be in
# another window: a burst across two windows fills neither. A rolled-up row has its greatest usage.
_LIMITS = (
    "SELECT *, coalesce(peak_usage, usage) AS most_used FROM (SELECT *, "
    "row_number() OVER (PARTITION BY {who} ORDER BY quota_bucket_usage / quota DESC NULLS LAST, "
    "usage DESC, event_time DESC, broker_id) AS fullest, "
    "sum(request_count) OVER (PARTITION BY {who}) AS all_requests, "
    "sum(throttled_requests) OVER (PARTITION BY {who}) AS all_throttled_requests, "
    "sum(throttle_time_ms) OVER (PARTITION BY {who}) AS all_throttle_time_ms, "
    "first_value(throttled_by) OVER (PARTITION BY {who} ORDER BY throttled_by IS NULL, "
    "throttle_time_ms DESC, event_time DESC, broker_id) AS mostly_throttled_by "
    "FROM quota_usage WHERE {of_cluster} AND {is_named} AND {in_range}) AS ranked "
    "WHERE fullest = 1 "
    "ORDER BY all_throttle_time_ms DESC, quota_bucket_usage / quota DESC NULLS LAST, "
    "usage DESC, principal, client_id, quota_type"
).replace("{who}", "principal, client_id, quota_type")
_SHARERS = (
    "SELECT principal, client_id, sum(usage) AS usage FROM quota_usage "
    "WHERE {of_cluster} AND quota_type = {quota_type} AND event_time = {event_time} "
    "AND (broker_id IS NOT DISTINCT FROM {broker_id}) AND quota_level = {quota_level} "
    "AND (quota_bucket_user IS NOT DISTINCT FROM {quota_bucket_user}) "
    "AND (quota_bucket_client_id IS NOT DISTINCT FROM {quota_bucket_client_id}) "
    "GROUP BY principal, client_id ORDER BY usage DESC, principal, client_id"
)
_PRODUCER_IDS = (
    "SELECT principal, broker_id, event_time, rate_per_s, quota_per_s, throttle_time_ms, "
    "count(*) OVER (PARTITION BY principal) AS seconds FROM producer_id_rates "
    "WHERE {of_cluster} AND {is_named} AND {in_range} AND is_violating "
    "ORDER BY throttle_time_ms DESC LIMIT 1"
)
_BURSTS = (
    "SELECT principal, cause, source, source_ids FROM producer_id_bursts "
    "WHERE {of_cluster} AND {is_named} AND is_accused AND ended_at >= {start} AND "
    "started_at < {end} ORDER BY ids DESC, started_at LIMIT 3"
)


class UnknownClientError(QuotaflowError):
    """No principal and no client id has this name; the message gives the nearest one."""


@dataclass(frozen=True, slots=True)
class ClientLimit:
    """One kind of quota of a client in its fullest window, and who shares its bucket then."""

    usage: Row
    sharers: tuple[Row, ...]
    more_sharers: int


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What the tables have about a principal or client id in a time range."""

    name: str
    start: datetime
    end: datetime
    clients: tuple[Row, ...]
    limits: tuple[ClientLimit, ...]
    producer_ids: Row | None
    accused_bursts: tuple[Row, ...]
    is_snapshot_taken: bool


def why(
    reader: Reader, name: str, at: datetime | None, lookback: timedelta, cluster_id: str | None
) -> ClientLimits:
    """Read the limits of `name`, a principal (User:alice, alice) or a client id, up to `at`.

    Without a time, up to its newest window; without a cluster, in the only one that the tables
    have. Raises UnknownClientError if there is no window by then, ConfigError if there are several
    clusters.
    """
    cluster_ids = [row["cluster_id"] for row in reader.rows(_CLUSTERS)]
    cluster = one_cluster(cluster_ids, cluster_id)
    of_cluster = "true" if cluster is None else f"cluster_id = {literal(cluster)}"
    newest = _newest(reader, of_cluster, name, at)
    end = newest.end or newest.start
    start = min(newest.start, end - lookback)
    in_range = f"event_time >= {literal(start)} AND event_time < {literal(end)}"
    filters = {"of_cluster": of_cluster, "is_named": _is_named(name), "in_range": in_range}
    limits = reader.rows(_LIMITS.format(**filters))
    by_principal = filters | {"is_named": _is_named(name, client_id=False)}
    producing = reader.rows(_PRODUCER_IDS.format(**by_principal))
    return ClientLimits(
        name=name,
        start=start,
        end=end,
        clients=tuple(reader.rows(_CLIENTS.format(**filters))),
        limits=tuple(_limited(reader, of_cluster, row) for row in limits),
        producer_ids=producing[0] if producing else None,
        accused_bursts=_accused_bursts(reader, by_principal, start, end),
        is_snapshot_taken=_is_snapshot_taken(reader, of_cluster),
    )


def _accused_bursts(
    reader: Reader, filters: dict[str, str], start: datetime, end: datetime
) -> tuple[Row, ...]:
    if not reader.extent("producer_id_bursts").rows:
        return ()
    return tuple(reader.rows(_BURSTS.format(**filters, start=literal(start), end=literal(end))))


def _is_snapshot_taken(reader: Reader, of_cluster: str) -> bool:
    is_made = bool(reader.extent("settings").rows)
    return is_made and bool(reader.rows(f"SELECT 1 AS n FROM settings WHERE {of_cluster} LIMIT 1"))


def _newest(reader: Reader, of_cluster: str, name: str, at: datetime | None) -> TimeRange:
    by_then = "true" if at is None else f"event_time <= {literal(at)}"
    sql = _NEWEST.format(of_cluster=of_cluster, is_named=_is_named(name), by_then=by_then)
    rows = reader.rows(sql)
    if not rows:
        raise UnknownClientError(_unknown(reader, of_cluster, name, at))
    newest: datetime = rows[0]["newest"]
    if rows[0]["rolled_up_s"]:
        # All of the minute or hour is in one row.
        return TimeRange(newest, newest + timedelta(seconds=rows[0]["rolled_up_s"]))
    # Include the window that starts then, for any length of windows.
    end = newest + timedelta(minutes=1)
    return TimeRange(newest, min(at, end) if at else end)


def _unknown(reader: Reader, of_cluster: str, name: str, at: datetime | None) -> str:
    queries = [
        _NAMES.format(of_cluster=of_cluster, column=column) for column in ("principal", "client_id")
    ]
    candidates = [row["name"] for query in queries for row in reader.rows(query)]
    when = "" if at is None else f" by {at:%Y-%m-%d %H:%M:%S} UTC"
    if name in candidates or f"User:{name}" in candidates:
        return f"the tables have nothing on {name}{when}: give a later --at, or none"
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.0)
    hint = f"did you mean {near[0]}?" if near else "quota_usage is empty"
    return (
        f"no principal and no client id {name}{when} ({hint}); the tables have what "
        "`quotaflow run --once` read last"
    )


def _limited(reader: Reader, of_cluster: str, row: Row) -> ClientLimit:
    if row["quota"] is None:
        return ClientLimit(row, (), 0)
    names = ("quota_type", "event_time", "broker_id", "quota_level", "quota_bucket_user")
    literals = {name: literal(row[name]) for name in (*names, "quota_bucket_client_id")}
    sql = _SHARERS.format(of_cluster=of_cluster, **literals)
    sharers = reader.rows(sql)
    return ClientLimit(row, tuple(sharers[:_MAX_SHARERS]), max(len(sharers) - _MAX_SHARERS, 0))


def _is_named(name: str, *, client_id: bool = True) -> str:
    names = [name] if ":" in name else [name, f"User:{name}"]
    of_principal = f"principal IN ({', '.join(literal(each) for each in names)})"
    return f"({of_principal} OR client_id = {literal(name)})" if client_id else of_principal
