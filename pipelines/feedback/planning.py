"""The plan that conf and the tables make: what is read for it."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback import evidence_checks, other_writers, plan_rows
from quotaflow.pipelines.feedback.change import Plan
from quotaflow.pipelines.feedback.desired_configs import DesiredConfig, Group
from quotaflow.pipelines.feedback.guards import REQUESTS, RESULTS, SNAPSHOT, TELEMETRY, PlanPolicy
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.ledger import Ledger
from quotaflow.pipelines.feedback.plan import plan
from quotaflow.pipelines.feedback.preflight import Preflight
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse import spark_reader, views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.configs import (
    BROKER,
    CLIENT_METRICS,
    ENTITY_TYPES,
    PROBE,
    REFUSED,
    TOPIC,
    USER,
)
from quotaflow.schemas.tables.control import CONFIG_CHANGES
from quotaflow.schemas.tables.quality import QUALITY_RESULTS
from quotaflow.udfs.rules.client_metrics import Client
from quotaflow.udfs.rules.subscription_safety import LiveClient

_WORDED = {"reason", "blocked_reason"}
_FIELDS = tuple(
    name
    for name in DesiredConfig.__dataclass_fields__
    if name not in {"entity_client_id", *_WORDED}
)
# A snapshot of some tables, or one that was refused configs or quotas, tells nothing of those.
NEWEST = """
    SELECT job, max(event_time) AS newest
    FROM pipeline_progress
    WHERE {0} AND job <> 'snapshot'
    GROUP BY job
    UNION ALL
    SELECT 'snapshot' AS job, CASE WHEN count(*) = 2 THEN min(newest) END AS newest
    FROM (
        SELECT target, max(event_time) AS newest
        FROM pipeline_progress
        WHERE {0} AND job = 'snapshot' AND outcome = 'in' AND target IN ('configs', 'client_quotas')
        GROUP BY target
    ) AS told
"""
_INPUT_JOBS = {
    REQUESTS: "ingest_request_log",
    RESULTS: "request_results",
    TELEMETRY: "client_metrics",
    SNAPSHOT: "snapshot",
}
ENTITIES = """
    SELECT
        (
            SELECT count(DISTINCT principal) FROM quota_usage
            WHERE event_time > now() - INTERVAL '1 days' AND {0}
        ) AS users,
        (SELECT count(*) FROM current_brokers WHERE {0}) AS brokers,
        (SELECT count(*) FROM current_topics WHERE {0}) AS topics
"""
_RESOURCES = (
    "SELECT entity_name, config_key, config_value FROM current_configs "
    "WHERE entity_type = 'client-metrics' AND cluster_id = {}"
)
_PROBES = f"SELECT * FROM current_settings WHERE setting LIKE '{PROBE}%'"
# Nothing is known that harms the Java client, and most clients are Java's.
_LIVE = (
    "SELECT client_instance_id, client_id, client_software_name, client_software_version, "
    "client_address, NULL AS port, client_kind FROM client_instances "
    "WHERE ended IS NULL AND client_software_name <> 'apache-kafka-java' AND cluster_id = {}"
)


def make(settings: Conf, now: datetime) -> Plan:
    """The plan as it is now."""
    wanted = desired(settings)
    evidence = {row.evidence_table for row in wanted}
    limits = replace(
        plan_policy_at(settings, now),
        refused_keys=refused(settings),
        failed_checks=failed_checks(settings, evidence),
    )
    return plan(wanted, now, limits, Connection.from_conf(settings), ledger(settings))


def desired(settings: Conf) -> list[DesiredConfig]:
    """The rows of desired_configs as they are now."""
    return [_worded(row) for row in rows(settings, "SELECT * FROM desired_configs")]


def _worded(row: dict[str, Any]) -> DesiredConfig:
    return DesiredConfig(
        **{name: row[name] for name in _FIELDS},
        reason=reasons.reason(row),
        blocked_reason=reasons.blocked_reason(row),
    )


def ledger(settings: Conf) -> Ledger:
    """What we wrote to clusters so far, as the journal tells; nothing before the first apply."""
    if not table_exists(settings, CONFIG_CHANGES.name):
        return Ledger()
    return Ledger.from_records(plan_rows.record(row) for row in rows(settings, plan_rows.SELECT))


def preflight(settings: Conf, cluster_id: str) -> Preflight:
    """The client-metrics resources of the last snapshot, and the live clients that could suffer."""
    resources: dict[str, dict[str, str]] = {}
    for row in rows(settings, _RESOURCES.format(literal(cluster_id))):
        resources.setdefault(row["entity_name"], {})[row["config_key"]] = row["config_value"]
    lives = rows(settings, _LIVE.format(literal(cluster_id)))
    known = [list(row.values()) for row in lives]
    return Preflight(resources, tuple(LiveClient(Client(*who), kind) for *who, kind in known))


def has_client_tables(settings: Conf) -> bool:
    """Whether the tables that a preflight asks were ever made."""
    asked = {*views.dependencies(_LIVE)[0], *views.dependencies(_RESOURCES)[0]}
    return all(table_exists(settings, table) for table in sorted(asked))


def rows(settings: Conf, sql: str) -> list[dict[str, Any]]:
    """The answer to a query that bounds how many rows it has."""
    if settings.warehouse.catalog_schema:
        found: list[dict[str, Any]] = spark_reader.query(settings, sql, None).read_all().to_pylist()
        return found
    return Reader(Warehouse(settings.warehouse)).rows(sql)


def table_exists(settings: Conf, table: str) -> bool:
    """Whether a table was ever made."""
    warehouse = Warehouse(settings.warehouse)
    if settings.warehouse.catalog_schema:
        return warehouse.exists(session.get(settings.spark), table)
    return Reader(warehouse).is_made(table)


def plan_policy(settings: Conf) -> PlanPolicy:
    """What conf keeps a plan from touching; the pipeline's own login too."""
    of = settings.plan
    return PlanPolicy(
        excluded_principals=frozenset(settings.excluded_principals),
        settle=timedelta(seconds=settings.results.settle_s),
        cluster_id=settings.kafka.cluster_id,
        max_subscriptions=of.max_subscriptions,
        max_input_age=timedelta(seconds=of.max_input_age_s),
        max_entity_share=of.max_entity_share,
        min_entities=of.min_entities,
        lease_s=of.lease_s,
        cooldown=timedelta(seconds=of.cooldown_s),
        hysteresis=of.hysteresis,
        max_step_factor=of.max_step_factor,
    )


def plan_policy_at(settings: Conf, now: datetime) -> PlanPolicy:
    """The same with how old what a plan stands on is, how many entities there are, who else
    manages them, and which live clients a resource could harm.
    """
    return replace(plan_policy(settings), harm=_harm(settings), **_inputs(settings, now))


def bounds_to_give_back(settings: Conf) -> PlanPolicy:
    """The bounds of a restore, with how many entities there are.

    Neither the age of inputs nor other programs keep a lease from ending: what we wrote must end
    even if somebody else manages the entity now. Where no table counts entities, only
    `plan.min_entities` change at once.
    """
    own = settings.kafka.cluster_id
    sql = ENTITIES.format(f"cluster_id = {literal(own)}" if own else "true")
    is_counted = all(table_exists(settings, table) for table in sorted(views.dependencies(sql)[0]))
    counts = rows(settings, sql)[0] if is_counted else {}
    known = {kind: counts.get(ENTITY_TYPES[kind], 0) for kind in (USER, BROKER, TOPIC)}
    return replace(plan_policy(settings), entity_counts=known)


def _harm(settings: Conf) -> Callable[[Group], str | None]:
    of_cluster = cache(partial(preflight, settings))

    def harm(rows: Group) -> str | None:
        # Who lives is asked for only where somebody is to be asked for metrics.
        is_asking = rows[0].entity_type == CLIENT_METRICS
        return of_cluster(rows[0].cluster_id).harm(rows) if is_asking else None

    return harm


def _inputs(settings: Conf, now: datetime) -> dict[str, Any]:
    ask, own = partial(rows, settings), settings.kafka.cluster_id
    is_own = f"cluster_id = {literal(own)}" if own else "true"
    of_jobs = ask(NEWEST.format(is_own))
    newest = {row["job"]: row["newest"] for row in of_jobs}
    (counts,) = ask(ENTITIES.format(is_own))
    return {
        "inputs_at": {name: newest.get(job) for name, job in _INPUT_JOBS.items()},
        "entity_counts": {kind: counts[ENTITY_TYPES[kind]] for kind in (USER, BROKER, TOPIC)},
        "other_managers": other_writers.managers(
            ask, now, settings.plan.tolerated_managers, is_own
        ),
    }


def failed_checks(settings: Conf, evidence: Collection[str]) -> dict[str, str]:
    """Why checks keep a plan from standing on these tables and views, of those where they do."""
    is_checked = table_exists(settings, QUALITY_RESULTS.name)
    return evidence_checks.failed_checks(
        settings, partial(rows, settings) if is_checked else None, evidence
    )


def refused(settings: Conf) -> dict[str, str]:
    """Configs the cluster refused when a snapshot asked whether it takes them, and its answer.

    Without an answer of conf's own cluster, or of the only one there is, nothing is known.
    """
    told = rows(settings, _PROBES)
    cluster_ids = {settings.kafka.cluster_id or row["cluster_id"] for row in told}
    answers = {
        row["setting"].removeprefix(PROBE): row["setting_value"].removeprefix(REFUSED)
        for row in told
        if row["cluster_id"] in cluster_ids and row["setting_value"].startswith(REFUSED)
    }
    return answers if len(cluster_ids) == 1 else {}
