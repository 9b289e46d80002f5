"""Replays requests under another byte quota: whom it would have throttled, and how long."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines.areas.quota_replay import checked_principals
from quotaflow.pipelines.areas.replayed_quota import (
    APIS,
    CONSUMER,
    ReplayedQuota,
    charge,
    members,
)
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.programs import program_of
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.byte_replay import ByteOutcome, ByteQuota, replay
from quotaflow.udfs.rules.principal_name import bare

MOST_REQUESTS = 1_000_000
"""A replay takes about 20 s for as many."""
_REQUESTS = """
SELECT cluster_id, broker_id, principal, client_id, connection_id,
    unix_millis(event_time) AS at_ms, throttle_time_ms, weight,
    list_transform(partitions, lambda p: p.bytes) AS sizes
FROM requests
WHERE api = {api} AND replica_id IS NULL AND principal IS NOT NULL AND event_time >= {since}
    AND {members}
LIMIT {limit}
"""
_PRINCIPALS = """
SELECT DISTINCT principal FROM requests
WHERE api = {api} AND replica_id IS NULL AND principal IS NOT NULL AND event_time >= {since}
"""
_QUOTAS = """
SELECT cluster_id, "user", is_default_user, client_id, is_default_client_id, quota
FROM current_client_quotas WHERE config_key = {kind} AND ip IS NULL AND NOT is_default_ip
"""
COLUMNS = [
    *("principal", "client_id", "broker_id", "requests", "throttled_before", "throttled_after"),
    *("throttle_ms_before", "throttle_ms_after", "longest_ms_after", "client_ids", "cluster_id"),
]


@dataclass(frozen=True, slots=True)
class QuotaReplay:
    """Rows of clients that share the quota, and what the whole is in milliseconds.

    `now_ms`: the replay at the quota of today, which shows how true the replay is; null if the
    entity has none. `lines` of the log stand for the requests of the rows.
    """

    since: datetime
    lines: int
    rows: list[dict[str, Any]]
    before_ms: float
    after_ms: float
    quota_now: float | None
    now_ms: float | None


def replayed(conf: Conf, other: ReplayedQuota, start: datetime | None) -> QuotaReplay:
    """What the quota would have done since then, or on the last day that the tables have.

    Raises ConfigError, QueryError.
    """
    reader = open_reader(conf)
    since = start or _last_day(reader)
    rows = _requests(reader, other, since)
    quotas = reader.rows(_QUOTAS.format(kind=literal(other.kind)))
    buckets = defaultdict[tuple[str, int], list[dict[str, Any]]](list)
    for row in members(rows, other, quotas):
        buckets[row["cluster_id"], row["broker_id"]].append(row)
    now = _quota_now(quotas, other)
    windows = (conf.quotas.num_windows, conf.quotas.window_ms)
    is_fetch = other.kind == CONSUMER
    clients: list[dict[str, Any]] = []
    now_ms = 0.0
    for (cluster_id, broker_id), charged in sorted(buckets.items()):
        charges = list(map(charge, charged))
        outcomes = replay(charges, ByteQuota(other.bytes_per_s, is_fetch, *windows))
        clients += _rows(cluster_id, broker_id, charged, outcomes)
        if now:
            today = replay(charges, ByteQuota(now, is_fetch, *windows))
            now_ms += sum(each.throttle_ms_after for each in today.values())
    clients.sort(key=lambda row: (-row["throttle_ms_after"], -row["throttle_ms_before"]))
    before_ms = sum(row["throttle_ms_before"] for row in clients)
    after_ms = sum(row["throttle_ms_after"] for row in clients)
    lines = sum(map(len, buckets.values()))
    return QuotaReplay(since, lines, clients, before_ms, after_ms, now, now_ms if now else None)


def summary(other: ReplayedQuota, done: QuotaReplay) -> Iterator[str]:
    """The result in one to four sentences."""
    api, rate = APIS[other.kind], texts.rate(other.bytes_per_s)
    yield (
        f"{other.name()}: brokers throttled {api} for {texts.duration(done.before_ms)} since "
        f"{texts.moment(done.since)} UTC. At {rate} they would throttle it for "
        f"{texts.duration(done.after_ms)}."
    )
    requests = sum(row["requests"] for row in done.rows)
    if requests > done.lines:
        yield (
            f"The log is sampled: the replay rests on {counted(done.lines, 'line')} that stand for "
            f"{counted(requests, 'request')}."
        )
    hit = [row for row in done.rows if row["throttled_after"] and not row["throttled_before"]]
    if hit:
        named = ", ".join(sorted({texts.label(row["client_id"]) for row in hit})[:5])
        yield f"It would throttle clients that no quota throttled so far: {named}."
    if done.now_ms is not None and done.quota_now is not None:
        yield (
            f"The same replay at today's quota, {texts.rate(done.quota_now)}, gives "
            f"{texts.duration(done.now_ms)}: compare that with what brokers answered."
        )


def _last_day(reader: Reader) -> datetime:
    newest_us = reader.extents(["requests"])["requests"].last_event_time_us
    newest = (
        datetime.now(UTC) if newest_us is None else datetime.fromtimestamp(newest_us / 1e6, UTC)
    )
    return newest - timedelta(days=1)


def _requests(reader: Reader, other: ReplayedQuota, since: datetime) -> list[dict[str, Any]]:
    given = {"api": literal(APIS[other.kind]), "since": literal(since)}
    conditions = []
    if other.user is not None:
        missing = f"no {APIS[other.kind]} since {texts.moment(since)} of user"
        names = checked_principals(reader, other.user, _PRINCIPALS.format(**given), missing)
        conditions.append(f"principal IN ({', '.join(map(literal, names))})")
    if other.client_id is not None:
        conditions.append(f"client_id = {literal(other.client_id)}")
    sql = _REQUESTS.format(members=" AND ".join(conditions), limit=MOST_REQUESTS + 1, **given)
    with engine_errors(sql):
        rows = [row for batch in reader.query(sql) for row in batch.to_pylist()]
    if len(rows) > MOST_REQUESTS:
        raise ConfigError(f"over {MOST_REQUESTS:,} requests: choose a later time by --since")
    if not rows:
        raise ConfigError(f"no {APIS[other.kind]} since {texts.moment(since)} of {other.name()}")
    return rows


def _quota_now(quotas: list[dict[str, Any]], other: ReplayedQuota) -> float | None:
    own = {
        quota["quota"]
        for quota in quotas
        if (quota["user"], quota["client_id"]) == (other.user and bare(other.user), other.client_id)
        and not quota["is_default_user"]
        and not quota["is_default_client_id"]
    }
    return own.pop() if len(own) == 1 else None


def _rows(
    cluster_id: str,
    broker_id: int,
    charged: list[dict[str, Any]],
    outcomes: dict[str, ByteOutcome],
) -> Iterator[dict[str, Any]]:
    ids = defaultdict[str, set[str]](set)
    for row in charged:
        ids[f"{row['principal']}\0{program_of(row['client_id'] or '')}"].add(row["client_id"] or "")
    for source, outcome in outcomes.items():
        principal, _, program = source.partition("\0")
        (*others, first) = sorted(ids[source])
        yield {
            "principal": principal,
            "client_id": program if others else first,
            "broker_id": broker_id,
            **{name: round(getattr(outcome, name)) for name in ByteOutcome.__slots__},
            "client_ids": len(ids[source]),
            "cluster_id": cluster_id,
        }
