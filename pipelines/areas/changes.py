"""What changed lately: configs and quotas of a name, its topics, and what can be why it suffers."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.finding import NOW, SOON, Finding, Problem, moment
from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.reasons.wording import name
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted
from quotaflow.udfs.rules.config_change import can_cause

NAME = "changes"
TABLES = ("config_alterations", "config_changes")

_MAX_CHANGES = 50
# What was altered at all brokers alike is one change.
_SEEN = (
    "SELECT cluster_id, event_time, principal, client_id, entity_type, entity_name, "
    "entity_client_id, config_key, operation, config_value, error_code, false AS is_own "
    "FROM config_alterations "
    # What quotaflow wrote while no line of it came: the log ended, or lost it.
    "UNION ALL SELECT cluster_id, event_time, NULL, NULL, entity_type, coalesce(entity_name, ''), "
    "entity_client_id, config_key, operation, coalesce(operand, config_value), 0, true "
    "FROM config_changes AS own WHERE step = 'done' AND purpose IN ('apply', 'restore') "
    "AND NOT EXISTS (SELECT 1 FROM config_alterations AS logged "
    "WHERE logged.cluster_id = own.cluster_id AND logged.entity_type = own.entity_type "
    "AND logged.entity_name = coalesce(own.entity_name, '') "
    "AND logged.config_key = own.config_key AND logged.operation = own.operation "
    "AND abs(unix_micros(logged.event_time) - unix_micros(own.event_time)) < 60000000)"
)
_ALTERED = (
    "SELECT max(event_time) AS event_time, principal, client_id, entity_type, "
    "is_own, string_agg(DISTINCT entity_name, ', ' ORDER BY entity_name) AS entity_name, "
    "entity_client_id, config_key, operation, config_value, changes.error_code, "
    "names.error_name FROM (SELECT *, CASE WHEN entity_type = 'broker' THEN '' ELSE entity_name "
    f"END AS entity FROM ({_SEEN}) AS seen "
    "WHERE {of_cluster} AND event_time >= {day} AND event_time < {until} "
    "AND ((entity_type = 'user' AND ({is_entity_user} OR entity_name = '')) "
    "OR (entity_type = 'client-id' AND ({is_entity_client} OR entity_name = '')) "
    "OR (entity_type = 'ip' AND {is_entity_ip}) "
    "OR (entity_type = 'topic' AND {is_entity_topic}) "
    "OR (entity_type = 'broker' AND (entity_name = '' OR {is_entity_broker} OR entity_name IN "
    "(SELECT CAST(broker_id AS STRING) FROM quota_usage WHERE {of_cluster} AND {is_client} "
    "AND {within:event_time}))))) AS changes "
    "LEFT JOIN error_names AS names ON changes.error_code = names.error_code "
    "GROUP BY entity, principal, client_id, entity_type, entity_client_id, config_key, operation, "
    "config_value, changes.error_code, names.error_name, is_own "
    "ORDER BY entity_type = 'broker', event_time DESC, entity_name, config_key "
    f"LIMIT {_MAX_CHANGES}"
)
_BY_IT = (
    "SELECT principal, CAST(count(*) AS BIGINT) AS alterations, max(event_time) AS event_time "
    "FROM config_alterations WHERE {of_cluster} AND event_time >= {day} AND event_time < {until} "
    "AND {is_principal} GROUP BY principal ORDER BY principal"
    " LIMIT {limit}"
)


ENDS = Question(
    "SELECT * FROM config_changes WHERE {of_cluster} AND {within:event_time} AND step <> 'begun'",
    "event_time DESC, number DESC",
)
"""Changes of quotaflow by their end."""
EVERY_STEP = Question(
    "SELECT * FROM config_changes WHERE {of_cluster} AND {within:event_time}", "event_time DESC"
)
"""Changes of quotaflow, each step of each."""
DESIRED = Question(
    "SELECT * FROM desired_configs WHERE {of_cluster} AND (blocked_reason IS NOT NULL "
    "OR config_value IS DISTINCT FROM prior_value)",
    "priority, entity_type, entity_name",
)
"""What results ask to change."""
ENDED = {
    "undone": "not written",
    "refused": "refused by a broker",
    "moved": "not written, because the config had changed",
    "yielded": "left to another login, which changed it",
}
"""How a change ended, by its step; the others are words: done, halted, released."""
FAILED = EVERY_STEP.where("step IN ('refused', 'moved', 'undone')")
"""Changes that could not be made, or are not what was written."""
WITHOUT_GAIN = EVERY_STEP.where("step = 'done' AND direction = 'revert' AND observed IS NOT NULL")
"""Quotas that were given back while the offence goes on: they do not help."""
SAVED = Question(
    """
SELECT cluster_id, plan_id, event_time, count(*) AS changes, min(planned_by) AS planned_by
FROM plans
WHERE {of_cluster} AND {within:event_time}
GROUP BY cluster_id, plan_id, event_time
""",
    "event_time DESC, plan_id",
)
"""Plans that were saved, each time."""
WRITTEN = Question(
    "SELECT plan_id, max(event_time) AS written_at FROM config_changes "
    "WHERE {of_cluster} AND {within:event_time} GROUP BY plan_id",
    "plan_id",
)
"""When something of a plan was written last."""
BATCHES = (
    "SELECT max(event_time) AS at FROM config_changes "
    "WHERE (purpose = 'apply' OR direction = 'revert') AND plan_id = {plan_id}"
)
"""When a plan was applied or taken back last."""
FROZEN = Question(
    """
SELECT plans.*
FROM plans
INNER JOIN (
    SELECT plan_id, event_time, row_number() OVER (ORDER BY event_time DESC, plan_id) AS nth
    FROM plans
    WHERE {of_cluster}
) AS newest ON plans.plan_id = newest.plan_id AND plans.event_time = newest.event_time
WHERE {of_cluster} AND newest.nth = 1
""",
    "number",
)
"""The plan that was saved last."""
UNENDED = Problem(code="change_unended", severity=NOW)
LEASE_OVER = Problem(code="lease_over", severity=SOON)
WAITING = Problem(code="change_waits", severity=SOON)


def findings(scope: Scope) -> Iterator[Finding]:
    """Alterations that can concern it, the newest first, and how many it made itself."""
    for row in scope.facts(_ALTERED):
        if row["entity_type"] != "broker" or _concerns(scope, row):
            yield _altered(row)
    for row in scope.facts(_BY_IT):
        yield Finding(
            text=f"{row['principal']} altered {counted(row['alterations'], 'config')} itself.",
            next_step="see `quotaflow show config_alterations`",
            evidence_table="config_alterations",
            evidence=row,
        )


def marks(findings: Iterable[Finding]) -> list[tuple[float, str]]:
    """The second of each change among findings of this area, and its sentence, in order of time."""
    changed = (each for each in findings if each.evidence.get("error_code") == 0)
    return sorted((each.evidence["event_time"].timestamp(), each.text) for each in changed)


def _concerns(scope: Scope, altered: Row) -> bool:
    """Whether the name is the broker, or the change can be why the name suffers."""
    assert scope.about is not None
    if scope.about.subject.brokers:
        return True
    suffered = chain.from_iterable(diagnoses.symptoms_if_known(scope) or ())
    return any(can_cause(altered["config_key"] or "", row["cause"], row["api"]) for row in suffered)


_OPERATIONS = {
    "SET": "set {key} of {entity} to {value}",
    "DELETE": "deleted {key} of {entity}",
    "APPEND": "added {value} to {key} of {entity}",
    "SUBTRACT": "removed {value} from {key} of {entity}",
}
_NUMBER = re.compile(r"\d+(\.\d+)?")
_OPERATION = "altered {key} of {entity}"


def _entity(kind: str, entity_name: str) -> str:
    return f"{kind} {entity_name}" if entity_name else f"the default {kind}"


def value_text(row: Row) -> str:
    """The value as it was written; a rate of bytes with its unit."""
    shown = name(row, "config_value")
    is_rate = (row["config_key"] or "").endswith(("_byte_rate", ".throttled.rate"))
    return texts.rate(float(shown)) if is_rate and _NUMBER.fullmatch(shown) else shown


def _altered(row: Row) -> Finding:
    entity = _entity(row["entity_type"], name(row, "entity_name"))
    if row["entity_client_id"] is not None:
        entity += f" with {_entity('client id', name(row, 'entity_client_id'))}"
    did = _OPERATIONS.get(row["operation"], _OPERATION)
    if row["config_value"] is None:
        # The log hides some values.
        did = did.removesuffix(" to {value}").replace("{value}", "entries")
    did = did.format(
        key=row["config_key"] or "all configs",
        entity=entity,
        value=value_text(row),
    )
    refused = ""
    if row["error_code"]:
        refused = f"; the broker refused it: {row['error_name'] or row['error_code']}"
    by = "quotaflow" if row["is_own"] else name(row, "principal")
    return Finding(
        text=f"{moment(row['event_time'])}: {by} {did}{refused}.",
        evidence_table="config_changes" if row["is_own"] else "config_alterations",
        evidence=row,
    )
