"""Admin work of the demo: topics, quotas, valid and refused config changes, a throttled move."""

import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.admin import DescribeConfigsRequest, client_quotas

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.traffic_report import ConfigCall, Move
from quotaflow.demo.traffic_stage import Stage
from quotaflow.pipelines.errors import KafkaError

_ERROR_CODE = re.compile(r"\[Error (\d+)\]")
_OTHER_MOVES = "existing partition assignment"
"""Of the message with which kafka-reassign-partitions refuses to begin a second move."""

_REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_LOOK_EVERY_S = 0.1
_MOVE_TIMEOUT_S = 90.0
_TOPICS_TIMEOUT_S = 30.0

_TOPIC, _BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
_SUBSCRIPTION = ConfigResourceType.CLIENT_METRICS

Call = Callable[[KafkaAdminClient], ConfigCall]


def make_topics(admin: KafkaAdminClient, topics: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Create missing topics. Returns name -> topic id of all."""
    there = set(admin.list_topics())
    if missing := {name: dict(topic) for name, topic in topics.items() if name not in there}:
        admin.create_topics(missing, wait_for_metadata=True)
    deadline_s = time.monotonic() + _TOPICS_TIMEOUT_S
    while time.monotonic() < deadline_s:
        # Any broker can answer, also one that does not know the topics yet: topic_id is None.
        ids = {topic["name"]: topic["topic_id"] for topic in admin.describe_topics(list(topics))}
        if all(ids.values()):
            return {name: _as_kafka_prints(ids[name]) for name in topics}
        time.sleep(_LOOK_EVERY_S)
    raise KafkaError(f"not all of {', '.join(topics)} were there after {_TOPICS_TIMEOUT_S:g} s")


def subscribe(admin: KafkaAdminClient, cluster: LocalCluster, name: str) -> None:
    """Subscribe to every metric of every client each second, and wait until every broker knows.

    A client that asks a broker too early gets the default interval of five minutes.
    """
    cluster.subscribe_telemetry(name)
    request = DescribeConfigsRequest(resources=[(_SUBSCRIPTION, name, None)])
    deadline_s = time.monotonic() + _TOPICS_TIMEOUT_S
    for broker_id in cluster.racks:
        ask = partial(admin._manager.send, request, node_id=broker_id)
        while not admin._manager.run(ask).results[0].configs:
            if time.monotonic() > deadline_s:
                raise KafkaError(f"broker {broker_id} does not know subscription {name}")
            time.sleep(_LOOK_EVERY_S)


def _as_kafka_prints(topic_id: str) -> str:
    return urlsafe_b64encode(UUID(topic_id).bytes).decode().rstrip("=")


def set_quota(user: str, key: str, value: float | None) -> Call:
    """Set a client quota of a user, or remove it with None."""
    request = client_quotas.AlterClientQuotasRequest
    entry = request.EntryData(
        entity=[request.EntryData.EntityData(entity_type="user", entity_name=user)],
        ops=[request.EntryData.OpData(key=key, value=value or 0.0, remove=value is None)],
    )

    def call(admin: KafkaAdminClient) -> ConfigCall:
        # There is no public method for quotas, only the request classes.
        answer = admin._manager.run(
            admin._manager.send, request(entries=[entry], validate_only=False)
        )
        text = None if value is None else f"{value:g}"
        return ConfigCall("user", user, key, text, answer.entries[0].error_code)

    return call


def set_config(kind: ConfigResourceType, name: str, key: str, value: str | None) -> Call:
    """Set a dynamic config of a topic, broker or subscription, or remove it with None."""
    change = ("DELETE", None) if value is None else value

    def call(admin: KafkaAdminClient) -> ConfigCall:
        resource = ConfigResource(kind, name, {key: change})
        answer = admin.alter_configs([resource], raise_on_unknown=False)[kind.name.lower()][name]
        code = _ERROR_CODE.search(answer)
        return ConfigCall(kind.name.lower(), name, key, value, int(code[1]) if code else 0)

    return call


CHURN: tuple[Call, ...] = (
    set_config(_TOPIC, "orders", "retention.ms", "7200000"),
    set_quota("alice", "consumer_byte_rate", 50e6),
    set_quota("mallory", "producer_ids_rate", 5.0),
    set_config(_TOPIC, "orders", "producer_ids_rate", "5"),
    set_config(_BROKER, "2", "leader.replication.throttled.rate", "abc"),
    set_config(_TOPIC, "payments", "leader.replication.throttled.replicas", "0-1"),
    set_config(_SUBSCRIPTION, "brief", "interval.ms", "50"),
    set_config(_SUBSCRIPTION, "brief", "metrics", "org.apache.kafka.consumer.coordinator."),
    set_config(_SUBSCRIPTION, "brief", "metrics", None),
    set_quota("alice", "producer_byte_rate", -1.0),
    set_quota("alice", "consumer_byte_rate", None),
    set_config(_TOPIC, "orders", "retention.ms", None),
)
"""Six changes that a broker accepts (three of them restore a value) and six that it refuses."""


def churn(stage: Stage) -> tuple[ConfigCall, ...]:
    """Request every change of `CHURN` in order, and read configs between them."""
    calls: list[ConfigCall] = []
    with stage.cluster.admin() as admin:
        for n in stage.paced(len(CHURN)):
            calls.append(CHURN[n](admin))
            admin.describe_configs([ConfigResource(_TOPIC, "orders")])
            _describe_quotas(admin)
    return tuple(calls)


def _describe_quotas(admin: KafkaAdminClient) -> None:
    request = client_quotas.DescribeClientQuotasRequest
    users = request.ComponentData(entity_type="user", match_type=2, match=None)
    admin._manager.run(admin._manager.send, request(components=[users], strict=False))


def move(stage: Stage, topic: str, *, size_bytes: int, throttle_bytes_per_s: int) -> Move:
    """Move partition 0 to another broker under a throttle, as kafka-reassign-partitions does.

    The tool's last `--verify` removes the throttle, unless the stage is stopped before.
    """
    with stage.cluster.admin() as admin:
        from_broker = _replicas(admin, topic)[0]
        to_broker = next(id_ for id_ in stage.cluster.racks if id_ != from_broker)
        plan = stage.cluster.folder / "clients" / f"{topic}.json"
        step = {"topic": topic, "partition": 0, "replicas": [to_broker]}
        plan.write_text(json.dumps({"version": 1, "partitions": [step]}), encoding="utf-8")
        tool = partial(
            stage.cluster.run_tool,
            _REASSIGN,
            *("--bootstrap-server", stage.cluster.bootstrap_servers),
            *("--command-config", str(stage.cluster.properties_file("admin"))),
            *("--reassignment-json-file", str(plan)),
        )
        deadline = time.monotonic() + _MOVE_TIMEOUT_S
        execute = partial(tool, "--execute", "--throttle", str(throttle_bytes_per_s))
        begin_alone(execute, admin.list_partition_reassignments, deadline)
        while _replicas(admin, topic) != [to_broker] and time.monotonic() < deadline:
            if stage.stop.wait(_LOOK_EVERY_S):
                return Move(topic, from_broker, to_broker, throttle_bytes_per_s, size_bytes, False)
        tool("--verify")
        is_finished = _replicas(admin, topic) == [to_broker]
    return Move(topic, from_broker, to_broker, throttle_bytes_per_s, size_bytes, is_finished)


def begin_alone(execute: Callable[[], object], moving: Callable[[], object], until: float) -> None:
    """Run the tool while no partition moves, at `until` (time.monotonic()) in any case.

    While another topic moves, the tool refuses, or with `--additional` sets throttles of that one
    too. A move of another thread can begin while the tool starts: then try again.
    """
    while True:
        while moving() and time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)
        try:
            execute()
        except KafkaError as error:
            if _OTHER_MOVES not in str(error) or time.monotonic() >= until:
                raise
        else:
            return


def _replicas(admin: KafkaAdminClient, topic: str) -> list[int]:
    replicas: list[int] = admin.describe_topics([topic])[0]["partitions"][0]["replica_nodes"]
    return replicas
