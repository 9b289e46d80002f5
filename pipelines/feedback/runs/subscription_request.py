"""Prepares a temporary subscription of one client, checked before anything is written."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, KafkaError, QuotaflowError
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.planning.preflight import Preflight, Resources
from quotaflow.pipelines.feedback.runs import client_instances
from quotaflow.pipelines.kafka import admin, client_metrics
from quotaflow.pipelines.terminal import values
from quotaflow.pipelines.warehouse import browsing
from quotaflow.schemas.configs import CLIENT_METRICS
from quotaflow.schemas.metrics import JAVA, METRICS, PREFIX
from quotaflow.udfs.counted import counted, noun
from quotaflow.udfs.rules import lease
from quotaflow.udfs.rules.client_metrics import (
    ALL,
    DEFAULT_INTERVAL_MS,
    Subscription,
    covered,
    effective,
)
from quotaflow.udfs.rules.lease import TemporarySubscription
from quotaflow.udfs.rules.subscription_safety import LiveClient

# A client's first push comes 0.5 to 1.5 intervals after its subscription.
_SLOWEST = 1.5


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


def prepare(settings: Conf, request: MetricsRequest) -> PreparedSubscription:
    """Look up the client, and the effect of the subscription beside the cluster's resources.

    Raises NoClientError, HarmError, KafkaError, or ConfigError for values a resource cannot have.
    """
    properties = settings.kafka.properties
    cluster = _cluster(settings)
    instances = client_instances.find(
        browsing.open_reader(settings), cluster.cluster_id, request.client
    )
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
    resources = client_metrics.read(properties)
    harm = Preflight(resources, instances.clients).harm_of({**resources, made.name: configs})
    if harm is not None:
        raise HarmError(f"nothing was written: client-metrics {made.name} {harm}")
    connection = Connection.from_conf(settings.kafka)
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


def _cluster(settings: Conf) -> admin.Cluster:
    ingest = settings.ingest
    topics = [topic for topic in (ingest.receiver_topic, ingest.request_log_topic) if topic]
    pinned = settings.kafka.cluster_id
    cluster = admin.describe(settings.kafka.properties, topics, pinned)
    if not cluster.topics:
        raise KafkaError(
            "no topic to follow: the cluster has neither ingest.receiver_topic nor "
            f"ingest.request_log_topic ({', '.join(topics) or 'both are switched off'})"
        )
    return cluster


def _of_client(instances: client_instances.LiveInstances, request: MetricsRequest) -> Iterator[str]:
    if left_out := instances.left_out:
        yield (
            f"{counted(left_out, 'more live instance')} of {request.client} "
            f"{noun(left_out, 'is', 'are')} left out: at most {client_instances.MAX_INSTANCES} get "
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
