"""The plan that conf and the tables make, as text and as JSON objects."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from quotaflow.pipelines.commands import values
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.feedback.kafka_configs import Connection
from quotaflow.pipelines.feedback.plan import Bounds, Change, Desired, Plan, plan
from quotaflow.pipelines.feedback.preflight import Preflight
from quotaflow.pipelines.reader import Reader
from quotaflow.pipelines.sql_text import literal
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas.configs import PROBE, REFUSED
from quotaflow.udfs.rules.client_metrics import Client
from quotaflow.udfs.rules.preflight import Live

_FIELDS = tuple(Desired.__dataclass_fields__)
_WRITTEN = tuple(name for name in _FIELDS if name != "withheld")
_STANDING = (
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
    checks = {name: preflight(settings, name) for name in {row.cluster_id for row in wanted}}
    limits = replace(bounds(settings), refused=refused(settings))
    limits = replace(limits, harm=lambda rows: checks[rows[0].cluster_id].harm(rows))
    return plan(wanted, now, limits, connection(settings))


def desired(settings: Conf) -> list[Desired]:
    """The rows of desired_configs as they are now."""
    rows = _rows(settings, f"SELECT {', '.join(_FIELDS)} FROM desired_configs")
    return [Desired(**row) for row in rows]


def preflight(settings: Conf, cluster_id: str) -> Preflight:
    """The client-metrics resources of the last snapshot, and the live clients that could suffer."""
    resources: dict[str, dict[str, str]] = {}
    for row in _rows(settings, _STANDING.format(literal(cluster_id))):
        resources.setdefault(row["entity_name"], {})[row["config_key"]] = row["config_value"]
    rows = _rows(settings, _LIVE.format(literal(cluster_id)))
    known = [list(row.values()) for row in rows]
    return Preflight(resources, tuple(Live(Client(*who), kind) for *who, kind in known))


def _rows(settings: Conf, sql: str) -> list[dict[str, Any]]:
    return Reader(Warehouse(settings.warehouse)).rows(sql)


def bounds(settings: Conf) -> Bounds:
    """What conf keeps a plan from touching; the pipeline's own login too."""
    own = settings.kafka.own_principal
    return Bounds(
        excluded_principals=frozenset(settings.plan.excluded_principals)
        | ({own} if own else set()),
        settle=timedelta(seconds=settings.results.settle_s),
        cluster_id=settings.kafka.cluster_id,
        max_subscriptions=settings.plan.max_subscriptions,
    )


def refused(settings: Conf) -> dict[str, str]:
    """Configs the cluster refused when a snapshot asked whether it takes them, and its answer.

    Without an answer of conf's own cluster, or of the only one there is, nothing is known.
    """
    rows = _rows(settings, _PROBES)
    cluster_ids = {settings.kafka.cluster_id or row["cluster_id"] for row in rows}
    answers = {
        row["setting"].removeprefix(PROBE): row["setting_value"].removeprefix(REFUSED)
        for row in rows
        if row["cluster_id"] in cluster_ids and row["setting_value"].startswith(REFUSED)
    }
    return answers if len(cluster_ids) == 1 else {}


def connection(settings: Conf) -> Connection:
    """How kafka-configs reaches the cluster of conf."""
    properties = settings.kafka.properties
    protocol = properties.get("security.protocol", "PLAINTEXT")
    return Connection(properties.get("bootstrap.servers", "BROKER:9092"), protocol != "PLAINTEXT")


def objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """Each change as one JSON object: the desired row, the value as written, command and note."""
    for change in plan.changes:
        row = {name: getattr(change.desired, name) for name in _WRITTEN}
        row |= {"config_value": change.value, "since": _time(change.desired.since)}
        yield row | {"command": change.command, "note": change.note}


def text(plan: Plan) -> Iterator[str]:
    """The plan for people; what a client named is shown with its control characters escaped."""
    if not plan.changes:
        yield "no changes wait"
        return
    for _, of_entity in groupby(plan.changes, key=lambda change: change.command):
        yield from _of_entity(list(of_entity))
        yield ""
    waiting = len(plan.changes)
    changes = "1 change waits" if waiting == 1 else f"{waiting} changes wait"
    yield f"{changes}. Nothing was applied: run a command above yourself; applying comes later."


def _of_entity(changes: list[Change]) -> Iterator[str]:
    first = changes[0].desired
    for change in changes:
        value = "(removed)" if change.value is None else change.value
        yield f"{_entity(first)}: {change.desired.config_key} = {value}"
    for reason in dict.fromkeys(change.desired.reason for change in changes):
        yield f"  why       {values.visible(reason)}"
    yield f"  since     {_time(first.since)}"
    for row in {change.desired.evidence_key: change.desired for change in changes}.values():
        yield f"  evidence  {row.evidence_table}: {values.visible(row.evidence_key)}"
    for change in changes:
        yield from _expiry(change.desired)
    yield f"  command   {changes[0].command}"
    for note in sorted({change.note for change in changes if change.note}):
        yield f"  note      {note}"


def _expiry(row: Desired) -> Iterator[str]:
    if row.valid_s is not None:
        back = "none" if row.prior_value is None else row.prior_value
        yield f"  expires   {row.config_key} after {row.valid_s} s, back to {back}"


def not_planned(plan: Plan) -> Iterator[str]:
    """What was held back, and why."""
    for line in dict.fromkeys(f"{_entity(held.desired)}: {held.why}" for held in plan.held):
        yield f"not planned: {values.visible(line)}"


def _entity(row: Desired) -> str:
    return values.visible(f"{row.entity_type} {row.entity_name} in cluster {row.cluster_id}")


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
