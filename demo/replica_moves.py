"""Moves of a topic's one partition by the protocol, and their throttles (KIP-73)."""

from dataclasses import dataclass
from functools import partial

from kafka import KafkaAdminClient
from kafka.admin import ConfigResourceType
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, IncrementalAlterConfigsRequest

from quotaflow.demo.traffic_configs import set_config
from quotaflow.pipelines.errors import KafkaError

_TOPIC, _BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
_SET, _DELETE = 0, 1
_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Throttled:
    """A throttle of a move of partition 0 as the tool sets it, rates where they are of use."""

    topic: str
    leader: int
    follower: int

    def set(self, admin: KafkaAdminClient, rate: int | None, *, with_lists: bool = True) -> None:
        """Set rates and lists, or remove them with None."""
        for side, broker in (("leader", self.leader), ("follower", self.follower)):
            set_rate(admin, side, broker, rate)
            if with_lists:
                listed = None if rate is None else [broker]
                set_list(admin, side, self.topic, listed)


def set_rate(admin: KafkaAdminClient, side: str, broker: int, rate: int | None) -> None:
    """The rate of one broker; remove it with None."""
    value = None if rate is None else str(rate)
    _set(admin, _BROKER, str(broker), _rate_key(side), value)


def set_default_rate(admin: KafkaAdminClient, side: str, rate: int | None) -> None:
    """The rate of all brokers that have none of their own; remove it with None."""
    # The admin client takes numbers of brokers alone.
    request = IncrementalAlterConfigsRequest
    config = request.AlterConfigsResource.AlterableConfig(
        name=_rate_key(side),
        config_operation=_SET if rate is not None else _DELETE,
        value=None if rate is None else str(rate),
    )
    resource = request.AlterConfigsResource(
        resource_type=_BROKER.value, resource_name="", configs=[config]
    )
    send = partial(admin._manager.send, request(resources=[resource], validate_only=False))
    if code := admin._manager.run(send).responses[0].error_code:
        raise KafkaError(f"the cluster refused {_rate_key(side)}={rate} of all brokers: {code}")


def set_list(admin: KafkaAdminClient, side: str, topic: str, brokers: list[int] | None) -> None:
    """The throttled replicas of partition 0; remove the list with None."""
    key = f"{side}.replication.throttled.replicas"
    value = None if brokers is None else ",".join(f"0:{broker}" for broker in brokers)
    _set(admin, _TOPIC, topic, key, value)


def move(admin: KafkaAdminClient, topic: str, target: list[int], *, ask: int) -> None:
    """Request of one broker that partition 0 be on these: another might not answer."""
    request = AlterPartitionReassignmentsRequest
    partition = request.ReassignableTopic.ReassignablePartition(partition_index=0, replicas=target)
    topic_move = request.ReassignableTopic(name=topic, partitions=[partition])
    send = partial(
        admin._manager.send, request(timeout_ms=_TIMEOUT_MS, topics=[topic_move]), node_id=ask
    )
    if code := admin._manager.run(send).responses[0].partitions[0].error_code:
        raise KafkaError(f"the cluster refused to move {topic} to {target}: error {code}")


def replicas(admin: KafkaAdminClient, topic: str) -> list[int]:
    """Of partition 0, those that a move adds too while it lasts."""
    nodes: list[int] = admin.describe_topics([topic])[0]["partitions"][0]["replica_nodes"]
    return nodes


def _rate_key(side: str) -> str:
    return f"{side}.replication.throttled.rate"


def _set(
    admin: KafkaAdminClient, kind: ConfigResourceType, name: str, key: str, value: str | None
) -> None:
    if code := set_config(kind, name, key, value)(admin).error_code:
        raise KafkaError(f"the cluster refused {key}={value} of {name}: {code}")
