"""`client_quotas`: quotas of users, client ids and addresses, and who set them (KIP-546)."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.engine import local
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError
from quotaflow.pipelines.results import config_alterations
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.spark.frames import null_safe
from quotaflow.pipelines.warehouse.time_ranges import EVER
from quotaflow.schemas.tables.config_alterations import CONFIG_ALTERATIONS
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import CLIENT_QUOTAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTER = ("set_at", "set_by")
_READ = [n for n in REQUESTS.column_names if n in {*CONFIG_ALTERATIONS.column_names, "body"}]
_PARTS = {"user": "user", "client_id": "client-id", "ip": "ip"}


def observe(state: ClusterState) -> Iterator[Row | UnansweredPart]:
    """All quotas of the cluster."""
    try:
        entries = state.client_quotas()
    except UnansweredError as error:
        yield UnansweredPart(str(error))
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
    """Add when and by whom a quota was set or removed, if the request log has it.

    That is the last request since `since` that altered it, if it set the value that was observed.
    """
    table = CLIENT_QUOTAS
    last = _last_ops(requests.where(F.col("event_time") > since) if since else requests)
    entity = [name for name in table.key if name != table.time]
    same = null_safe(entity, "changed", "last")
    is_it = F.col("changed.quota").eqNullSafe(F.col("last.quota"))
    joined = changed.alias("changed").join(last.alias("last"), same, "left")
    setter = {name: F.when(is_it, F.col(f"last.{name}")).alias(name) for name in SETTER}
    return joined.select(*(setter.get(n, F.col(f"changed.{n}")) for n in table.column_names))


def _last_ops(requests: "DataFrame") -> "DataFrame":
    """The newest request that changed each quota, with the value it set; null if it removed it."""
    # These requests are few, so the rule runs in this process, whether its job has run or not.
    alter_requests = requests.where(F.col("api") == config_alterations.QUOTAS).select(*_READ)
    alterations = local.compute_over(
        config_alterations.result().computation([EVER]), {REQUESTS.name: alter_requests.toArrow()}
    )
    done = frames.from_arrow(requests.sparkSession, alterations).where("error_code = 0")
    kind, name, client_id = (F.col(n) for n in ("entity_type", "entity_name", "entity_client_id"))
    parts = {
        "user": F.when(kind == "user", name),
        "client_id": F.when(kind == "client-id", name).otherwise(client_id),
        "ip": F.when(kind == "ip", name),
    }
    rows = done.select(
        "cluster_id",
        "config_key",
        *(F.nullif(part, F.lit("")).alias(column) for column, part in parts.items()),
        *(
            F.coalesce(part == "", F.lit(False)).alias(f"is_default_{column}")
            for column, part in parts.items()
        ),
        F.col("config_value").cast("double").alias("quota"),
        F.col("event_time").alias("set_at"),
        F.col("principal").alias("set_by"),
    )
    entity = [name for name in rows.columns if name not in {"quota", *SETTER}]
    newest = F.max_by(F.struct("quota", *SETTER), "set_at").alias("newest")
    return rows.groupBy(*entity).agg(newest).select(*entity, "newest.*")
