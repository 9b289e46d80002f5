"""Who else alters dynamic configs: after us, one config; or programs that manage them for good."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.feedback.change import APPEND
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.restore_plan import Key, LaterWriter
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.tables import Tables
from quotaflow.schemas.configs import BROKER, TOPIC, USER

Named = Mapping[Key, Mapping[str, datetime]]

WRITERS = """
    SELECT cluster_id, entity_type, entity_name, entity_client_id, config_key, principal,
        client_id, altered_at, operation, config_value
    FROM config_writers WHERE is_own = false
"""
# Of a list the last alteration does not tell all: ours may have come after somebody else's.
NAMERS = """
    SELECT changes.cluster_id, changes.entity_type, changes.entity_name,
        CAST(NULL AS STRING) AS entity_client_id, changes.config_key, changes.principal,
        changes.client_id, changes.event_time AS altered_at, changes.operation, changes.config_value
    FROM throttle_changes AS changes
    INNER JOIN current_settings AS own
        ON changes.cluster_id = own.cluster_id AND own.setting = 'own_principal'
    WHERE changes.entity_type = 'topic' AND changes.error_code = 0
        AND changes.operation IN ('SET', 'APPEND') AND changes.principal <> own.setting_value
        AND changes.event_time > {}
    ORDER BY altered_at
"""
MANAGERS = (
    "SELECT kind, principal, client_id, entity_types, evidence_code, evidence, last_seen "
    "FROM other_config_managers WHERE {}"
)
_TIME = "%Y-%m-%d %H:%M:%S UTC"
_MOST_CHARS = 100
_ACTIVE_FOR = timedelta(days=1)
# Where only a trace was found, nobody tells whose configs it alters: what such programs do.
_MANAGED_BY = {
    "cruise_control": (BROKER, TOPIC),
    "strimzi": (USER, TOPIC, BROKER),
}
# Who moves replicas sets and removes their throttles.
_MANAGED_WITH = {"replicas": (BROKER, TOPIC)}


def later_writers(
    tables: Tables, since: Mapping[Key, datetime], own: str | None, named: Named | None = None
) -> dict[Key, LaterWriter]:
    """Who altered these configs later than that, as far as the request log tells.

    `own` is the login that asks: the view takes the one of snapshots for ours, and what writes may
    have one of its own. `named`: of lists, when we named each entry that is ours.
    """
    last = {
        key: _setter(row)
        for row in (tables.rows(WRITERS) if since else [])
        if row["principal"] != own
        and (key := _key(row)) in since
        and row["altered_at"].astimezone(UTC) > since[key]
    }
    return last | _namers(tables, named or {}, own)


def _namers(tables: Tables, named: Named, own: str | None) -> dict[Key, LaterWriter]:
    """Who else named entries of these lists since we named them: the last one, with all of them."""
    times = [at for entries in named.values() for at in entries.values()]
    found: dict[Key, LaterWriter] = {}
    for row in tables.rows(NAMERS.format(literal(min(times)))) if times else []:
        key, at = _key(row), row["altered_at"].astimezone(UTC)
        ours = named.get(key, {})
        theirs = _setter(row).claimed_entries(
            frozenset(e for e, since in ours.items() if at > since)
        )
        if theirs and row["principal"] != own:
            before = found[key].claimed_entries(frozenset(ours)) if key in found else frozenset()
            found[key] = LaterWriter(_writer(row), APPEND, ",".join(sorted(theirs | before)))
    return found


def managers(
    tables: Tables, now: datetime, tolerated: Iterable[str], of_cluster: str = "true"
) -> dict[str, str]:
    """Type of entity -> a program that manages its configs too, of late, and is not tolerated.

    `of_cluster` is SQL that holds for rows of the cluster that is meant.
    """
    found: dict[str, str] = {}
    for row in sorted(
        tables.rows(MANAGERS.format(of_cluster)), key=lambda row: (row["kind"], row["evidence"])
    ):
        seen = row["last_seen"]
        is_active = seen is None or now - seen.astimezone(UTC) < _ACTIVE_FOR
        if is_active and row["kind"] not in tolerated:
            for entity_type in _types(row):
                found.setdefault(entity_type, _described(row))
    return found


def _key(row: Mapping[str, Any]) -> Key:
    # The log has an empty name for the default of a type.
    name = row["entity_name"] or None
    return ConfigEntity(row["cluster_id"], row["entity_type"], name, row["entity_client_id"]), row[
        "config_key"
    ]


def _setter(row: Mapping[str, Any]) -> LaterWriter:
    return LaterWriter(_writer(row), row["operation"], row["config_value"])


def _writer(row: Mapping[str, Any]) -> str:
    return f"{_cut(row['principal'])} ({_cut(row['client_id'])}) at {row['altered_at']:{_TIME}}"


def _types(row: Mapping[str, Any]) -> Iterable[str]:
    if row["entity_types"] is None:
        return _MANAGED_BY.get(row["kind"], (USER, TOPIC, BROKER))
    types = row["entity_types"].split(",")
    return [each for of in types for each in _MANAGED_WITH.get(of, (of,))]


def _described(row: Mapping[str, Any]) -> str:
    who = (
        "" if row["principal"] is None else f"{_cut(row['principal'])} ({_cut(row['client_id'])}), "
    )
    seen = row["last_seen"]
    when = "its trace stands" if seen is None else f"last seen {seen:{_TIME}}"
    return f"{row['kind']} ({who}{reasons.trace(row)}, {when})"


def _cut(text: str | None) -> str:
    return (text or "-")[:_MOST_CHARS]
