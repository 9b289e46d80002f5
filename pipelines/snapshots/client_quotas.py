"""`client_quotas`: quotas of users, client ids and addresses, and who set them (KIP-546)."""

from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa

from quotaflow.pipelines.compute import local
from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.snapshots.changes import identity, same
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import EVER
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_QUOTAS, REQUESTS
from quotaflow.udfs.engine.database import opened

SETTER = ("set_at", "set_by")
_ALTERATION = "ALTER_CLIENT_QUOTAS"
_OF_ALTERATIONS = {*TABLES["config_alterations"].column_names, "body", "source_line"}
READ = pa.schema([field for field in REQUESTS.arrow if field.name in _OF_ALTERATIONS])
"""The columns of `alter_requests`."""
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


def alter_requests(is_of_cluster: str, since: datetime | None) -> str:
    """SQL of any engine for the requests that altered quotas after `since`, in columns READ."""
    is_later = f" AND event_time > {literal(since)}" if since else ""
    return (
        f"SELECT {', '.join(READ.names)} FROM {REQUESTS.name} "
        f"WHERE api = {literal(_ALTERATION)} AND {is_of_cluster}{is_later}"
    )


def with_setter(changed: pa.Table, requests: pa.Table) -> pa.Table:
    """Add when and by whom a quota was set or removed, if the request log has it.

    That is the last of these `alter_requests` that altered it, if it set the value that was
    observed.
    """
    # These requests are few, so the rule runs in this process, whether its job has run or not.
    alterations = local.compute_over(
        Computation(result_of("config_alterations"), (EVER,)), {REQUESTS.name: requests}
    )
    columns = CLIENT_QUOTAS.arrow
    with opened({"changed": changed, "config_alterations": alterations}) as database:
        return pa.Table.from_batches(database.query(_WITH_SETTER, columns), columns)


_SAME = same((*identity(CLIENT_QUOTAS), "quota"), "changed", "newest")
_WITH_SETTER = f"""
WITH done AS (
    -- The name of a part is empty for the default, and null if the part is not in the entity.
    SELECT
        *,
        CASE WHEN entity_type = 'user' THEN entity_name END AS user_name,
        CASE WHEN entity_type = 'client-id' THEN entity_name ELSE entity_client_id END
            AS client_name,
        CASE WHEN entity_type = 'ip' THEN entity_name END AS address
    FROM config_alterations
    WHERE error_code = 0
),
newest AS (
    SELECT
        cluster_id,
        nullif(user_name, '') AS user, coalesce(user_name = '', false) AS is_default_user,
        nullif(client_name, '') AS client_id,
        coalesce(client_name = '', false) AS is_default_client_id,
        nullif(address, '') AS ip, coalesce(address = '', false) AS is_default_ip,
        config_key, TRY_CAST(config_value AS DOUBLE) AS quota,
        event_time AS set_at, principal AS set_by
    FROM done
    QUALIFY row_number() OVER (
        PARTITION BY cluster_id, user_name, client_name, address, config_key
        ORDER BY event_time DESC, position DESC
    ) = 1
)
SELECT changed.* REPLACE (newest.set_at AS set_at, newest.set_by AS set_by)
FROM changed LEFT JOIN newest ON {_SAME}
"""
