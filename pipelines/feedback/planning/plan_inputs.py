"""What a plan reads from tables: desired configs, the age of inputs, and counts of entities."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.configs import BROKER, IP, PROBE, REFUSED, TOPIC, USER
from quotaflow.udfs.rules.address import is_within, normalized

_MADE = {"entity_name", "reason", "blocked_reason", "observed"}
_FIELDS = tuple(name for name in DesiredConfig.__dataclass_fields__ if name not in _MADE)
MOVED = """
    SELECT DISTINCT topic, partition, broker_id
    FROM replication_throttles
    WHERE {0} AND is_moving AND topic IS NOT NULL AND broker_id IS NOT NULL
        AND event_time = (SELECT max(event_time) FROM replication_throttles WHERE {0})
"""
PROTECTED = "SELECT principal, why_code FROM protected_principals WHERE {0}"
ENTITY_COUNTS = {
    USER: """
        SELECT count(DISTINCT principal) AS entities FROM quota_usage
        WHERE event_time > now() - INTERVAL '1 days' AND {0}
    """,
    IP: """
        SELECT count(DISTINCT client_address) AS entities FROM address_clients
        WHERE event_time > now() - INTERVAL '1 days' AND {0}
    """,
    BROKER: "SELECT count(*) AS entities FROM current_brokers WHERE {0}",
    TOPIC: "SELECT count(*) AS entities FROM current_topics WHERE {0}",
}
# What is beyond the work of producer ids is as in the view address_programs.
STRANGERS = """
    SELECT cluster_id, client_address, principal,
        sum(CASE WHEN data_requests > 10 * producer_ids THEN data_requests ELSE 0 END) AS requests,
        sum(CASE WHEN data_requests > 10 * producer_ids THEN data_bytes ELSE 0 END) AS bytes
    FROM address_clients
    WHERE requests > 0 AND ({0})
    GROUP BY cluster_id, client_address, principal
    ORDER BY principal
"""
_OF_LIMIT = "(cluster_id = {} AND client_address = {} AND event_time >= {})"
_LEAST_REQUESTS, _LEAST_BYTES = 20, 65_536
"""Another program of the same principal moved so much, as in producer_id_offenders."""
_EVIDENCE = re.compile("principal=(.*) client_address=(.*)")
_PROBES = f"SELECT * FROM current_settings WHERE setting LIKE '{PROBE}%'"


def desired_configs(tables: Reader) -> list[DesiredConfig]:
    """The rows of desired_configs as they are now."""
    return [worded(row) for row in tables.rows("SELECT * FROM desired_configs")]


def worded(row: dict[str, Any]) -> DesiredConfig:
    """A row of desired_configs with its codes in words."""
    return DesiredConfig(
        **{name: row[name] for name in _FIELDS if name in row},
        entity_name=named(row["entity_type"], row["entity_name"]),
        reason=reasons.reason(row),
        blocked_reason=reasons.blocked_reason(row),
        observed=row.get("offence"),
    )


def named(entity_type: str, name: str | None) -> str | None:
    """The name of an entity; an address in its usual form, which the request log has not."""
    return normalized(name) or name if entity_type == IP and name else name


def protected_principals(tables: Reader, cluster: str) -> dict[str, str]:
    """Principals that no quota may slow down -> how each is known."""
    rows = tables.rows(PROTECTED.format(cluster))
    return {row["principal"]: row["why_code"] for row in rows}


def moves(tables: Reader, cluster: str) -> list[frozenset[str]]:
    """The brokers of each current reassignment: those whose moved partitions have brokers in
    common are one.
    """
    brokers: dict[tuple[str, int], set[str]] = {}
    for row in rows_if_made(tables, MOVED.format(cluster)):
        partition = brokers.setdefault((row["topic"], row["partition"]), set())
        partition.add(str(row["broker_id"]))
    groups: list[set[str]] = []
    for each in brokers.values():
        shared = [group for group in groups if group & each]
        groups = [group for group in groups if group not in shared]
        groups.append(each.union(*shared))
    return [frozenset(group) for group in groups]


def strangers(tables: Reader, ledger: Ledger, listed: Iterable[str]) -> dict[Key, str]:
    """Limits of addresses that we set -> who else worked from there since, in words.

    Addresses in the networks that conf lists to be limited have none: there others are known.
    """
    limits: dict[tuple[str, str], tuple[Key, str]] = {}
    times = []
    for key, owned in ledger.owned.items():
        named = _EVIDENCE.fullmatch(owned.record.evidence_key)
        entity = key[0]
        if entity.entity_type != IP or named is None or is_within(entity.entity_name, listed):
            continue
        limits[entity.cluster_id, named[2]] = key, named[1]
        # A minute that began before the write has requests from before it.
        since = owned.first_recorded_at + timedelta(minutes=1)
        times.append(_OF_LIMIT.format(*map(literal, (entity.cluster_id, named[2], since))))
    if not limits:
        return {}
    seen: dict[Key, str] = {}
    for row in rows_if_made(tables, STRANGERS.format(" OR ".join(times))):
        key, principal = limits[row["cluster_id"], row["client_address"]]
        if row["principal"] != principal:
            seen[key] = row["principal"] or "a client without a principal"
        elif row["requests"] >= _LEAST_REQUESTS and row["bytes"] >= _LEAST_BYTES:
            seen.setdefault(key, f"another program of {principal}")
    return seen


def entity_counts(tables: Reader, cluster: str) -> dict[str, int]:
    """How many users, addresses, brokers and topics the cluster has; 0 of what no table has."""
    return {
        entity_type: sum(row["entities"] for row in rows_if_made(tables, sql.format(cluster)))
        for entity_type, sql in ENTITY_COUNTS.items()
    }


def refused_keys(tables: Reader, cluster_id: str | None) -> Mapping[str, str]:
    """Configs that the cluster refused when a snapshot probed them, with its answer.

    Empty without an answer of this cluster or, if None, of the only one there is.
    """
    probes = tables.rows(_PROBES)
    cluster_ids = {cluster_id or row["cluster_id"] for row in probes}
    refusals = {
        row["setting"].removeprefix(PROBE): row["setting_value"].removeprefix(REFUSED)
        for row in probes
        if row["cluster_id"] in cluster_ids and row["setting_value"].startswith(REFUSED)
    }
    return refusals if len(cluster_ids) == 1 else {}


def of_cluster(cluster_id: str | None) -> str:
    """SQL that is true for rows of this cluster; of every cluster if None."""
    return f"cluster_id = {literal(cluster_id)}" if cluster_id else "true"


def all_made(tables: Reader, queries: Iterable[str]) -> bool:
    """Whether all tables exist without which these queries cannot be answered."""
    needed = {table for sql in queries for table in views.required(views.named(sql))}
    return all(tables.is_made(table) for table in sorted(needed))


def rows_if_made(tables: Reader, sql: str) -> list[dict[str, Any]]:
    """The rows of a query; none if a table that it needs was never made."""
    return tables.rows(sql) if all_made(tables, [sql]) else []
