"""`client_quotas`: quotas of users, client ids and addresses, and who set them (KIP-546)."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.cluster_state import ClusterState, UnansweredError
from quotaflow.pipelines.equality import null_safe
from quotaflow.pipelines.snapshots.seen import Gap, Row
from quotaflow.schemas import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTER = ("set_at", "set_by")
_PARTS = {"user": "user", "client_id": "client-id", "ip": "ip"}
_ENTITY = "ARRAY<STRUCT<entityType: STRING, entityName: STRING>>"
_BODY = f"""
    request STRUCT<entries: ARRAY<STRUCT<
        entity: {_ENTITY}, ops: ARRAY<STRUCT<key: STRING, value: DOUBLE, remove: BOOLEAN>>
    >>, validateOnly: BOOLEAN>,
    response STRUCT<entries: ARRAY<STRUCT<errorCode: INT, entity: {_ENTITY}>>>
"""


def told(state: ClusterState) -> Iterator[Row | Gap]:
    """Ask for all quotas."""
    try:
        entries = state.client_quotas()
    except UnansweredError as error:
        yield Gap(str(error))
        return
    for entry in entries:
        names = {part.entity_type: part.entity_name for part in entry.entity}
        entity: dict[str, str | bool | None] = {}
        for column, kind in _PARTS.items():
            entity[column] = names.get(kind)
            entity[f"is_default_{column}"] = kind in names and names[kind] is None
        for value in entry.values:
            yield entity | {"config_key": value.key, "quota": value.value}


def with_setter(changed: "DataFrame", requests: "DataFrame", since: datetime | None) -> "DataFrame":
    """Say when and by whom a quota was set or removed, where the request log tells.

    That is the last request since `since` that touched it, if it did what the snapshot saw.
    """
    table = tables.CLIENT_QUOTAS
    last = _last_ops(requests.where(F.col("event_time") > since) if since else requests)
    entity = [name for name in table.key if name != table.time]
    same = null_safe(entity, "changed", "last")
    is_it = F.col("changed.quota").eqNullSafe(F.col("last.quota"))
    joined = changed.alias("changed").join(last.alias("last"), same, "left")
    told = {name: F.when(is_it, F.col(f"last.{name}")).alias(name) for name in SETTER}
    return joined.select(*(told.get(n, F.col(f"changed.{n}")) for n in table.column_names))


def _last_ops(requests: "DataFrame") -> "DataFrame":
    """The newest request that changed each quota, with the value it set; null if it removed it."""
    lines = requests.where("api = 'ALTER_CLIENT_QUOTAS'").select(
        "cluster_id", "event_time", "principal", F.from_json("body", _BODY).alias("body")
    )
    entries = lines.where("NOT body.request.validateOnly").select(
        "*",
        F.expr("""transform(
            filter(body.response.entries, e -> e.errorCode = 0), e -> array_sort(e.entity)
        )""").alias("done"),
        F.explode("body.request.entries").alias("entry"),
    )
    done = entries.where("array_contains(done, array_sort(entry.entity))")
    ops = done.select("*", F.explode("entry.ops").alias("op"))
    named = {
        column: F.expr(f"get(filter(entry.entity, p -> p.entityType = '{kind}'), 0)")
        for column, kind in _PARTS.items()
    }
    parts = ops.withColumns({f"{column}_part": part for column, part in named.items()})
    rows = parts.select(
        "cluster_id",
        F.col("op.key").alias("config_key"),
        *(F.col(f"{column}_part.entityName").alias(column) for column in _PARTS),
        *(
            F.expr(f"{column}_part IS NOT NULL AND {column}_part.entityName IS NULL").alias(
                f"is_default_{column}"
            )
            for column in _PARTS
        ),
        F.expr("if(op.remove, NULL, op.value)").alias("quota"),
        F.col("event_time").alias("set_at"),
        F.col("principal").alias("set_by"),
    )
    entity = [name for name in rows.columns if name not in {"quota", *SETTER}]
    newest = F.max_by(F.struct("quota", *SETTER), "set_at").alias("newest")
    return rows.groupBy(*entity).agg(newest).select(*entity, "newest.*")
