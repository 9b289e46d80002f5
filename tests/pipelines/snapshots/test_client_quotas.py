"""Who set a quota, and when, by the request log."""

from typing import Any

import pyarrow as pa

from quotaflow.pipelines.snapshots import client_quotas
from quotaflow.schemas.tables.declared import CLIENT_QUOTAS

from ...delta_tables import NOON
from .snapshot_scenes import CLUSTER, Scene, altered, at

SetterCase = tuple[float, float | None, dict[str, Any]]
SET: dict[str, tuple[float | None, list[SetterCase], int | None]] = {
    "the last one set it": (5.5, [(1, 4, {}), (2, 5.5, {})], 2),
    "set otherwise since": (5.5, [(2, 5.5, {}), (3, 4, {})], None),
    "removed": (None, [(1, 5.5, {}), (2, None, {})], 2),
    "refused": (5.5, [(2, 5.5, {"code": 42})], None),
    "only checked": (5.5, [(2, 5.5, {"dry": True})], None),
    "before the last look": (5.5, [(-1, 5.5, {})], None),
    "another key": (5.5, [(2, 5.5, {"key": "producer_byte_rate"})], None),
    "another cluster": (5.5, [(2, 5.5, {"cluster_id": "c2"})], None),
    "a line that was cut": (5.5, [(2, 5.5, {"body": "{cut"})], None),
    "nobody's line": (5.5, [], None),
}
"""By user: the quota a snapshot saw, requests as minute and value, and the minute it was set."""


def test_who_set_a_quota_and_when(scene: Scene) -> None:
    scene.put(
        "requests",
        [
            altered(minute, value, user=user, **others)
            for user, (_, requests, _) in SET.items()
            for minute, value, others in requests
        ],
    )
    entity = {"is_default_user": False, "is_default_client_id": True, "is_default_ip": False}
    common = {"cluster_id": CLUSTER, "event_time": NOON, "is_removed": False}
    seen = [
        common | entity | {"user": user, "config_key": "request_percentage", "quota": quota}
        for user, (quota, _, _) in SET.items()
    ]
    changed = pa.Table.from_pylist(seen, schema=CLIENT_QUOTAS.arrow)
    taken = scene.snapshot(5)
    sql = client_quotas.alter_requests(taken.is_of_cluster, NOON)
    requests = taken.open_reader().read(sql, client_quotas.READ)
    rows = client_quotas.with_setter(changed, requests)
    assert rows.schema == CLIENT_QUOTAS.arrow
    expected = {
        user: (quota, None, None) if minute is None else (quota, at(minute), "User:admin")
        for user, (quota, _, minute) in SET.items()
    }
    setters = {r["user"]: (r["quota"], r["set_at"], r["set_by"]) for r in rows.to_pylist()}
    assert setters == expected
    assert rows.drop_columns(["set_at", "set_by"]).sort_by("user") == changed.drop_columns(
        ["set_at", "set_by"]
    ).sort_by("user")
