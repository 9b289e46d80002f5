"""How far to raise a quota that throttles: a replay of the last requests says what it leaves."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from quotaflow.pipelines.areas import replayed_quota
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.replayed_quota import LEAST_BYTES_PER_S, ReplayedQuota
from quotaflow.pipelines.areas.scope import HOUR, Scope
from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.terminal import texts
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.byte_replay import ByteQuota, Charge, replay
from quotaflow.udfs.rules.quota import DEFAULT, LEVELS, NAMED, QuotaEntity, raises

LEAST_MS = 100
"""Less throttle time than this in all delays nobody."""
_MOST_REQUESTS = 4_000
"""Replaying more takes longer than a person waits."""
_ADDRESS = "SELECT host, port FROM current_brokers WHERE {of_cluster} ORDER BY broker_id LIMIT 1"
_REQUESTS = """
SELECT cluster_id, broker_id, principal, client_id, connection_id,
    unix_millis(event_time) AS at_ms, throttle_time_ms, weight,
    partitions
FROM requests
WHERE {of_cluster} AND api = {api} AND replica_id IS NULL AND principal IS NOT NULL
    AND event_time >= {hour_ago} AND event_time < {until} AND {members}
ORDER BY event_time DESC
LIMIT {most}
"""
_QUOTAS = """
SELECT cluster_id, "user", is_default_user, client_id, is_default_client_id, quota
FROM current_client_quotas
WHERE {of_cluster} AND config_key = {kind} AND ip IS NULL AND NOT is_default_ip
"""


def entity(row: Row) -> QuotaEntity:
    """The entity that the effective quota was set on."""
    of_user, of_client_id = LEVELS[row["quota_level"] - 1]
    return QuotaEntity(
        user=row["quota_bucket_user"] if of_user == NAMED else None,
        is_default_user=of_user == DEFAULT,
        client_id=row["quota_bucket_client_id"] if of_client_id == NAMED else None,
        is_default_client_id=of_client_id == DEFAULT,
    )


def command(scope: Scope, row: Row) -> str:
    """What follows the advice to raise the quota of a row of quota_usage.

    It is what a replay leaves of the throttle, if requests can be replayed, and the command.
    """
    from quotaflow.pipelines.feedback.configs.kafka_configs import (  # noqa: PLC0415  pydantic
        ANY_BROKER,
        Connection,
        address,
        quota_command,
    )

    connection = Connection.from_conf(scope.conf.kafka)
    if connection.bootstrap_servers == ANY_BROKER:
        # The listener that answered the last snapshot.
        for broker in scope.rows_if_made(_ADDRESS):
            connection = replace(connection, bootstrap_servers=address(**broker))
    quota, left = _next(scope, row)
    return f"{left}: {quota_command(entity(row), row['quota_type'], quota, connection)}"


def _next(scope: Scope, row: Row) -> tuple[float, str]:
    """The least step that leaves next to no throttle, or the greatest; and what it leaves."""
    part = row["all_throttled_requests"] / max(row["all_requests"], 1)
    steps = raises(row["quota"], row["quota_bucket_usage"], part)
    charged = _charged(scope, row)
    before_ms = sum(each["throttle_time_ms"] or 0 for each in charged)
    if before_ms < LEAST_MS:
        return steps[0], ""
    outcomes = ((quota, _left_ms(scope, row["quota_type"], quota, charged)) for quota in steps)
    quota, left_ms = next(
        ((quota, ms) for quota, ms in outcomes if ms < LEAST_MS or quota == steps[-1])
    )
    of_all = f"still have waited {texts.duration(left_ms)} of {texts.duration(before_ms)}"
    left = "not have waited" if left_ms < LEAST_MS else of_all
    requests = counted(len(charged), "request")
    return quota, f"; by a replay, the last {requests} would {left}"


def _left_ms(scope: Scope, kind: str, quota: float, charged: Sequence[Row]) -> float:
    """For how long brokers would have throttled these requests."""
    conf, is_fetch = scope.conf.quotas, kind == replayed_quota.CONSUMER
    brokers = defaultdict[int, list[Charge]](list)
    for each in charged:
        brokers[each["broker_id"]].append(replayed_quota.charge(each))
    other = ByteQuota(quota, is_fetch, conf.num_windows, conf.window_ms)
    return sum(
        outcome.throttle_ms_after
        for charges in brokers.values()
        for outcome in replay(charges, other).values()
    )


def _charged(scope: Scope, row: Row) -> Sequence[Row]:
    """Requests of the last hour that share the quota; none if they cannot be replayed."""
    owner, kind = entity(row), row["quota_type"]
    is_named = not owner.is_default_user and not owner.is_default_client_id
    is_replayed = kind in replayed_quota.APIS and row["quota"] >= LEAST_BYTES_PER_S
    if not is_named or not is_replayed:
        return ()
    quota = ReplayedQuota(kind, row["quota"], owner.user, owner.client_id)
    members = [
        *([f"principal = {literal(row['principal'])}"] if owner.user is not None else []),
        *([f"client_id = {literal(owner.client_id)}"] if owner.client_id is not None else []),
    ]
    given = {"hour_ago": literal(scope.until - HOUR), "most": str(_MOST_REQUESTS)}
    given |= {"api": literal(replayed_quota.APIS[kind]), "members": " AND ".join(members)}
    try:
        rows = scope.rows(_REQUESTS, **given)
        quotas = scope.rows_if_made(_QUOTAS.replace("{kind}", literal(kind)))
    except (NeverMadeError, QueryError):
        return ()
    sized = [row | {"sizes": [each["bytes"] for each in row["partitions"] or ()]} for row in rows]
    return list(replayed_quota.members(sized, quota, quotas))
