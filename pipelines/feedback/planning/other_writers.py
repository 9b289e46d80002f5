"""Others who alter dynamic configs: later writers of one config, and other config managers."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.feedback.configs.change import APPEND
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.ledger.ledger import Key
from quotaflow.pipelines.feedback.planning.holds import Alteration
from quotaflow.pipelines.feedback.planning.plan_inputs import rows_if_made
from quotaflow.pipelines.feedback.planning.restore_plan import LaterWriter
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.configs import BROKER, TOPIC, USER

Named = Mapping[Key, Mapping[str, datetime]]

WRITERS = """
    SELECT cluster_id, entity_type, entity_name, entity_client_id, config_key, principal,
        client_id, altered_at, operation, config_value
    FROM config_writers WHERE is_own = false
"""
LAST_ALTERATIONS = """
    SELECT cluster_id, entity_type, entity_name, entity_client_id, config_key, principal,
        client_id, altered_at, operation, config_value, is_own
    FROM config_writers
"""
# The last alteration of a list is not enough: ours may have followed somebody else's.
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
    "SELECT kind, principal, client_id, entity_types, recent_entities, evidence_code, evidence, "
    "last_seen "
    "FROM other_config_managers WHERE {}"
)
_TIME = "%Y-%m-%d %H:%M:%S UTC"
_MOST_CHARS = 100
_ACTIVE_FOR = timedelta(days=1)
_UNKNOWN_KINDS = ("admin_client", "other")
_PROGRAM_ENTITIES = 5
"""So many entities altered in a day by one principal and client id are the work of a program. A
person with kafka-configs alters fewer, and what a person altered is left alone key by key."""
# If only a trace was found, the entities are unknown: the types that such a program manages.
_MANAGED_BY = {
    "cruise_control": (BROKER, TOPIC),
    "strimzi": (USER, TOPIC, BROKER),
}
# A program that moves replicas sets and removes their throttles.
_MANAGED_WITH = {"replicas": (BROKER, TOPIC)}


def later_writers(
    tables: Reader, since: Mapping[Key, datetime], own: str | None, named: Named | None = None
) -> dict[Key, LaterWriter]:
    """The writers that altered these configs after `since`, as far as the request log shows.

    `own` is the principal of this command. The view excludes only that of snapshots, and a command
    that writes may have another. `named`: for lists, when we added each entry that is ours.
    """
    last = {
        key: _setter(row)
        for row in (rows_if_made(tables, WRITERS) if since else [])
        if row["principal"] != own
        and (key := _key(row)) in since
        and row["altered_at"].astimezone(UTC) > since[key]
    }
    return last | _namers(tables, named or {}, own)


def _namers(tables: Reader, named: Named, own: str | None) -> dict[Key, LaterWriter]:
    """Later writers of list entries that are ours: the last writer, with all those entries."""
    times = [at for entries in named.values() for at in entries.values()]
    writers: dict[Key, LaterWriter] = {}
    for row in rows_if_made(tables, NAMERS.format(literal(min(times)))) if times else []:
        key, at = _key(row), row["altered_at"].astimezone(UTC)
        ours = named.get(key, {})
        theirs = _setter(row).claimed_entries(
            frozenset(e for e, since in ours.items() if at > since)
        )
        if theirs and row["principal"] != own:
            if key in writers:
                theirs |= writers[key].claimed_entries(frozenset(ours))
            writers[key] = LaterWriter(_writer(row), APPEND, ",".join(sorted(theirs)))
    return writers


def last_alterations(
    tables: Reader, keys: Collection[Key], own: str | None
) -> dict[Key, Alteration]:
    """The last alteration of each of these configs, as far as the request log shows it.

    `own` is the principal of this command. The view knows only that of snapshots.
    """
    if not keys or not tables.is_made("config_alterations"):
        return {}
    return {
        key: Alteration(
            row["altered_at"].astimezone(UTC),
            _writer(row),
            row["operation"],
            row["config_value"],
            is_own=bool(row["is_own"]) or (own is not None and row["principal"] == own),
        )
        for row in tables.rows(LAST_ALTERATIONS)
        if (key := _key(row)) in keys
    }


@dataclass(frozen=True, slots=True)
class OtherManagers:
    """Programs that recently managed configs, in words.

    `user_operator` is Strimzi's User Operator, or a writer named so, if it wrote quotas of users.
    `by_type`: type of entity -> another program that is not tolerated.
    """

    user_operator: str | None
    by_type: Mapping[str, str]


def managers(
    tables: Reader,
    now: datetime,
    tolerated: Collection[str],
    of_cluster: str = "true",
    operators: Collection[str] = (),
) -> OtherManagers:
    """The programs by the view of them. `of_cluster` is SQL that is true for rows of the cluster.

    A writer of an unknown kind is a program if it altered many entities, and is none of the
    `operators`. A User Operator is never tolerated: it would write its own quotas again.
    """
    rows = sorted(
        (row for row in tables.rows(MANAGERS.format(of_cluster)) if _is_active(row, now)),
        key=lambda row: (row["kind"], row["evidence"]),
    )
    operator = next((_described(row) for row in rows if _is_user_operator(row)), None)
    by_type: dict[str, str] = {}
    for row in rows:
        if row["kind"] not in tolerated and not _is_person(row, operators):
            for entity_type in _types(row):
                by_type.setdefault(entity_type, _described(row))
    if by_type.get(USER) == operator:
        by_type.pop(USER, None)
    return OtherManagers(operator, by_type)


def _is_active(row: Mapping[str, Any], now: datetime) -> bool:
    seen = row["last_seen"]
    return seen is None or bool(now - seen.astimezone(UTC) < _ACTIVE_FOR)


def _is_user_operator(row: Mapping[str, Any]) -> bool:
    names = f"{row['principal']} {row['client_id']}".lower()
    return (row["kind"] == "strimzi" or "user-operator" in names) and USER in _types(row)


def _is_person(row: Mapping[str, Any], operators: Collection[str]) -> bool:
    if row["kind"] not in _UNKNOWN_KINDS:
        return False
    return row["principal"] in operators or (row["recent_entities"] or 0) < _PROGRAM_ENTITIES


def _key(row: Mapping[str, Any]) -> Key:
    # In the log the default of a type has an empty name.
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
    return [managed for type_ in types for managed in _MANAGED_WITH.get(type_, (type_,))]


def _described(row: Mapping[str, Any]) -> str:
    principal = (
        "" if row["principal"] is None else f"{_cut(row['principal'])} ({_cut(row['client_id'])}), "
    )
    seen = row["last_seen"]
    when = "its trace is there" if seen is None else f"last seen {seen:{_TIME}}"
    return f"{row['kind']} ({principal}{reasons.trace(row)}, {when})"


def _cut(text: str | None) -> str:
    return (text or "-")[:_MOST_CHARS]
