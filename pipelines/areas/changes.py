"""What changed lately: configs and quotas of a name, its topics, and all brokers."""

from collections.abc import Iterator

from quotaflow.pipelines.areas.finding import Finding, Row, moment
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.reasons.wording import name
from quotaflow.udfs.counted import counted

NAME = "changes"
TABLES = ("config_alterations",)

_MAX_CHANGES = 50
# What was altered at all brokers alike is one change.
_ALTERED = (
    "SELECT max(event_time) AS event_time, principal, client_id, entity_type, "
    "string_agg(DISTINCT entity_name, ', ' ORDER BY entity_name) AS entity_name, "
    "entity_client_id, config_key, operation, config_value, changes.error_code, "
    "names.error_name FROM (SELECT *, CASE WHEN entity_type = 'broker' THEN '' ELSE entity_name "
    "END AS entity "
    "FROM config_alterations WHERE {of_cluster} AND event_time >= {day} AND event_time < {until} "
    "AND ((entity_type = 'user' AND ({is_entity_user} OR entity_name = '')) "
    "OR (entity_type = 'client-id' AND ({is_entity_client} OR entity_name = '')) "
    "OR (entity_type = 'ip' AND {is_entity_ip}) "
    "OR (entity_type = 'topic' AND {is_entity_topic}) OR entity_type = 'broker')) AS changes "
    "LEFT JOIN error_names AS names ON changes.error_code = names.error_code "
    "GROUP BY entity, principal, client_id, entity_type, entity_client_id, config_key, operation, "
    "config_value, changes.error_code, names.error_name "
    "ORDER BY entity_type = 'broker', event_time DESC, entity_name, config_key "
    f"LIMIT {_MAX_CHANGES}"
)
_BY_IT = (
    "SELECT principal, CAST(count(*) AS BIGINT) AS alterations, max(event_time) AS event_time "
    "FROM config_alterations WHERE {of_cluster} AND event_time >= {day} AND event_time < {until} "
    "AND {is_principal} GROUP BY principal ORDER BY principal"
    " LIMIT {limit}"
)


def findings(scope: Scope) -> Iterator[Finding]:
    """Alterations that can concern it, the newest first, and how many it made itself."""
    for row in scope.rows(_ALTERED):
        yield _altered(row)
    for row in scope.rows(_BY_IT):
        yield Finding(
            text=f"{row['principal']} altered {counted(row['alterations'], 'config')} itself.",
            next_step="see config_alterations",
            evidence_table="config_alterations",
            evidence=row,
        )


def _altered(row: Row) -> Finding:
    entity = name(row, "entity_name") or "(default)"
    client = ""
    if row["entity_client_id"] is not None:
        client = f" with client id {name(row, 'entity_client_id') or '(default)'}"
    value = "" if row["config_value"] is None else f" = {name(row, 'config_value')}"
    refused = ""
    if row["error_code"]:
        refused = f"; refused: {row['error_name'] or row['error_code']}"
    return Finding(
        text=(
            f"{moment(row['event_time'])}: {name(row, 'principal')} {row['operation']} "
            f"{row['config_key'] or 'all configs'}{value} of {row['entity_type']} {entity}{client}"
            f"{refused}."
        ),
        evidence_table="config_alterations",
        evidence=row,
    )
