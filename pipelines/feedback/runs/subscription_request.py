"""Prepares a temporary subscription of one client, checked before anything is written.

The client is an instance id, a client id or a principal, looked up in client_instances.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.config import IngestSection, KafkaSection
from quotaflow.pipelines.errors import ConfigError, KafkaError, QuotaflowError
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.planning.preflight import Preflight, Resources
from quotaflow.pipelines.kafka import admin, client_metrics
from quotaflow.pipelines.terminal import values
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.configs import CLIENT_METRICS
from quotaflow.schemas.metrics import JAVA, METRICS, PREFIX
from quotaflow.udfs.counted import counted, noun
from quotaflow.udfs.rules import lease, principal_name
from quotaflow.udfs.rules.client_metrics import (
    ALL,
    DEFAULT_INTERVAL_MS,
    Client,
    Subscription,
    covered,
    effective,
)
from quotaflow.udfs.rules.lease import TemporarySubscription
from quotaflow.udfs.rules.subscription_safety import LiveClient

# A client's first push comes 0.5 to 1.5 intervals after its subscription.
_SLOWEST = 1.5
_MAX_INSTANCES = 20
_MAX_NAMES = 10_000
_FRESH = "the tables have what `quotaflow run --once` read last"
_INSTANCES = (
    "SELECT client_instance_id, client_id, client_software_name, client_software_version, "
    "client_address, client_kind, ended, last_seen FROM client_instances "
    "WHERE cluster_id = {cluster} AND ({named}) "
    "ORDER BY last_seen DESC, client_instance_id"
)
_PRINCIPALS = (
    "SELECT DISTINCT principal FROM client_instances "
    "WHERE cluster_id = {cluster} AND principal IS NOT NULL"
)
_NAMES = (
    "SELECT DISTINCT client_id FROM client_instances "
    f"WHERE cluster_id = {{cluster}} AND ended IS NULL ORDER BY client_id LIMIT {_MAX_NAMES}"
)


class NoClientError(QuotaflowError):
    """No live client instance has this id; the message names the nearest one that is live."""


@dataclass(frozen=True, slots=True)
class LiveInstances:
    """Live instances, the last seen first, and how many were left out."""

    clients: tuple[LiveClient, ...]
    left_out: int


class HarmError(QuotaflowError):
    """The subscription could harm a live client: nothing was written."""


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """What an operator requests from a client: metric prefixes, interval, start and end."""

    client: str
    metrics: tuple[str, ...]
    interval_ms: int
    now: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class PreparedSubscription:
    """A safe client-metrics resource, the clients it matches, the cluster, commands and notes."""

    lease: TemporarySubscription
    clients: tuple[LiveClient, ...]
    cluster: admin.Cluster
    write_command: str
    delete_command: str
    notes: tuple[str, ...]


def prepare(
    kafka: KafkaSection, ingest: IngestSection, reader: Reader, request: MetricsRequest
) -> PreparedSubscription:
    """Look up the client, and the effect of the subscription beside the cluster's resources.

    Raises NoClientError, HarmError, KafkaError, or ConfigError for values a resource cannot have.
    """
    cluster = _cluster(kafka, ingest)
    instances = _find(reader, cluster.cluster_id, request.client)
    ids = tuple(live.client.client_instance_id or "" for live in instances.clients)
    # Old clients send a metric twice if two prefixes match it, so the longer one is dropped.
    metrics = [m for m in request.metrics if m not in covered(request.metrics)]
    made = TemporarySubscription(
        ids, tuple(metrics), request.interval_ms, int(request.until.timestamp())
    )
    try:
        configs = made.configs
    except ValueError as error:
        raise ConfigError(str(error)) from None
    resources = client_metrics.read(kafka.login)
    harm = Preflight(resources, instances.clients).harm_of({**resources, made.name: configs})
    if harm is not None:
        raise HarmError(f"nothing was written: client-metrics {made.name} {harm}")
    connection = Connection.from_conf(kafka)
    entity = ConfigEntity(cluster.cluster_id, CLIENT_METRICS, made.name)
    return PreparedSubscription(
        lease=made,
        clients=instances.clients,
        cluster=cluster,
        write_command=command(entity, configs, connection),
        delete_command=command(entity, dict.fromkeys(configs), connection),
        notes=(
            *_of_client(instances, request),
            *_of_effect(instances.clients, resources, made, request),
            *_of_names(made.metrics),
            *_left_over(cluster.cluster_id, resources, request.now, connection),
        ),
    )


def text(prepared: PreparedSubscription) -> Iterator[str]:
    """What would be written, as lines of text."""
    yield f"client-metrics {prepared.lease.name}"
    for key, value in prepared.lease.configs.items():
        yield f"  {key:12}{value}"
    yield f"  {'until':12}{_time(prepared.lease.until_s)}"
    for live in prepared.clients:
        client = live.client
        software = f"{client.client_software_name} {client.client_software_version}"
        details = [
            client.client_instance_id,
            client.client_id,
            software,
            client.client_source_address,
        ]
        yield values.visible(f"  {'matches':12}{'  '.join(part for part in details if part)}")
    yield f"  {'command':12}{prepared.write_command}"
    yield f"  {'take back':12}{prepared.delete_command}"
    yield "Nothing was written: --yes writes it, shows what comes, and deletes it."


def as_object(prepared: PreparedSubscription) -> dict[str, Any]:
    """The same as one JSON object."""
    made = prepared.lease
    return {
        "name": made.name,
        "configs": made.configs,
        "until": _time(made.until_s),
        "client_instance_ids": list(made.client_instance_ids),
        "command": prepared.write_command,
        "take_back_command": prepared.delete_command,
    }


def _cluster(kafka: KafkaSection, ingest: IngestSection) -> admin.Cluster:
    topics = [topic for topic in (ingest.receiver_topic, ingest.request_log_topic) if topic]
    cluster = admin.describe(kafka.login, topics, kafka.cluster_id)
    if not cluster.topics:
        raise KafkaError(
            "no topic to follow: the cluster has neither ingest.receiver_topic nor "
            f"ingest.request_log_topic ({', '.join(topics) or 'both are switched off'})"
        )
    return cluster


def _find(reader: Reader, cluster_id: str, name: str) -> LiveInstances:
    """The live instance with this id, else those with this client id, else those of a principal.

    Raises NoClientError when there is none.
    """
    of_cluster = {"cluster": literal(cluster_id)}
    rows = _of_id(reader, of_cluster, name) or _of_principal(reader, of_cluster, name)
    live = [_live(row) for row in rows if row["ended"] is None]
    if live:
        return LiveInstances(tuple(live[:_MAX_INSTANCES]), max(len(live) - _MAX_INSTANCES, 0))
    if rows:
        seen = f"{rows[0]['ended']}, last seen {rows[0]['last_seen']:%Y-%m-%d %H:%M:%S} UTC"
        raise NoClientError(f"no live client {name}: {seen} ({_FRESH})")
    names = [row["client_id"] for row in reader.rows(_NAMES.format(**of_cluster))]
    candidates = [name for name in names if name]
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.0)
    hint = f"did you mean {near[0]}?" if near else "none is live"
    raise NoClientError(f"no client {name} ({hint}); {_FRESH}")


def _of_id(reader: Reader, of_cluster: dict[str, str], name: str) -> list[dict[str, Any]]:
    condition = f"client_instance_id = {literal(name)} OR client_id = {literal(name)}"
    rows = reader.rows(_INSTANCES.format(**of_cluster, named=condition))
    return [row for row in rows if row["client_instance_id"] == name] or rows


def _of_principal(reader: Reader, of_cluster: dict[str, str], name: str) -> list[dict[str, Any]]:
    principals = [row["principal"] for row in reader.rows(_PRINCIPALS.format(**of_cluster))]
    matches = principal_name.named(name, principals)
    if not matches:
        return []
    condition = f"principal IN ({', '.join(map(literal, matches))})"
    return reader.rows(_INSTANCES.format(**of_cluster, named=condition))


def _live(row: dict[str, Any]) -> LiveClient:
    client = Client(
        client_instance_id=row["client_instance_id"],
        client_id=row["client_id"],
        client_software_name=row["client_software_name"],
        client_software_version=row["client_software_version"],
        client_source_address=row["client_address"],
    )
    return LiveClient(client, row["client_kind"])


def _of_client(instances: LiveInstances, request: MetricsRequest) -> Iterator[str]:
    if left_out := instances.left_out:
        yield (
            f"{counted(left_out, 'more live instance')} of {request.client} "
            f"{noun(left_out, 'is', 'are')} left out: at most {_MAX_INSTANCES} get "
            "the subscription, the last seen ones"
        )


def _of_effect(
    lives: tuple[LiveClient, ...],
    resources: Resources,
    made: TemporarySubscription,
    request: MetricsRequest,
) -> Iterator[str]:
    before = [Subscription.from_configs(name, configs) for name, configs in resources.items()]
    after = [*before, Subscription.from_configs(made.name, made.configs)]
    current_ms = max(effective(before, live.client)[1] for live in lives)
    wait_s = round(_SLOWEST * current_ms / 1_000)
    yield f"clients get it with their next push or request: within {wait_s} s"
    if wait_s > (request.until - request.now).total_seconds():
        yield "it may end before that: give a longer --for"
    subscriptions = {live: effective(after, live.client) for live in lives}
    twice = {
        pair
        for live, (metrics, _) in subscriptions.items()
        if (live.client.client_software_name or "").lower() != JAVA
        for pair in covered(metrics).items()
    }
    for longer, shorter in sorted(twice):
        yield f"librdkafka 2.5.0 to 2.10.0 sends twice what both {shorter} and {longer} match"
    min_ms = min(interval_ms for _, interval_ms in subscriptions.values())
    if min_ms < made.interval_ms:
        is_over_default = made.interval_ms > DEFAULT_INTERVAL_MS
        reason = "5 minutes at most" if is_over_default else "other subscriptions match too"
        yield f"pushes will come every {min_ms} ms: the shortest interval applies ({reason})"


def _of_names(metrics: tuple[str, ...]) -> Iterator[str]:
    for prefix in metrics:
        if prefix != ALL and not any(name.startswith(prefix) for name in METRICS):
            # Compare only as many parts as the prefix has; it may lack the common first parts.
            whole = prefix if prefix.startswith(PREFIX) else PREFIX + prefix
            parts = whole.rstrip(".").count(".") + 1
            cut = {".".join(name.split(".")[:parts]) for name in METRICS}
            near = difflib.get_close_matches(whole.rstrip("."), sorted(cut), n=1, cutoff=0.0)
            yield f"no metric of the catalogue begins with {prefix} (nearest: {near[0]})"


def _left_over(
    cluster_id: str,
    resources: Mapping[str, Mapping[str, str]],
    now: datetime,
    connection: Connection,
) -> Iterator[str]:
    for name, configs in sorted(resources.items()):
        ended_s = lease.until_s(name)
        if ended_s is not None and ended_s < now.timestamp():
            entity = ConfigEntity(cluster_id, CLIENT_METRICS, name)
            remove = command(entity, dict.fromkeys(configs), connection)
            yield f"left over since {_time(ended_s)}: client-metrics {name}; remove it: {remove}"


def _time(moment_s: int) -> str:
    return f"{datetime.fromtimestamp(moment_s, UTC):%Y-%m-%dT%H:%M:%S}Z"
