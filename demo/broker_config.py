"""server.properties of one combined KRaft node of the demo cluster."""

from collections.abc import Mapping
from pathlib import Path

from quotaflow.demo.credentials import Credentials
from quotaflow.demo.ports import LOOPBACK, Ports

TELEMETRY_TOPIC = "client_telemetry"
REQUEST_LOG_TOPIC = "broker_request_logs"
LEASE_TOPIC = "quotaflow-leases"


def rack(node_id: int) -> str:
    """az-a for node 1, az-b for node 2, ..."""
    return f"az-{chr(ord('a') + node_id - 1)}"


def server_properties(
    node_id: int, ports: Mapping[int, Ports], data: Path, credentials: Credentials
) -> dict[str, str]:
    """The whole configuration of broker `node_id`; it has passwords, so write it privately."""
    own = ports[node_id]
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "broker.rack": rack(node_id),
        "log.dirs": str(data),
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        **_listeners(own, ports),
        **_logins(credentials),
        **_small_topics(min(3, len(ports))),
        **_telemetry(ports, credentials),
        **_acls(),
        "auto.create.topics.enable": "false",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(8 << 20),
        "log.segment.bytes": str(64 << 20),
        "group.initial.rebalance.delay.ms": "0",
    }


def _listeners(own: Ports, ports: Mapping[int, Ports]) -> dict[str, str]:
    for_brokers = f"SASL_PLAINTEXT://{LOOPBACK}:{own.client},INTERNAL://{LOOPBACK}:{own.internal}"
    return {
        "controller.quorum.voters": ",".join(
            f"{node_id}@{LOOPBACK}:{of_node.controller}" for node_id, of_node in ports.items()
        ),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{for_brokers},CONTROLLER://{LOOPBACK}:{own.controller}",
        "advertised.listeners": for_brokers,
        "listener.security.protocol.map": (
            "SASL_PLAINTEXT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "INTERNAL",
    }


def _logins(credentials: Credentials) -> dict[str, str]:
    for_clients = credentials.client_listener()
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        # Without this the broker wants a SCRAM login for its own listener too and does not start.
        "listener.name.internal.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.internal.plain.sasl.jaas.config": credentials.internal_listener(),
        **{f"listener.name.sasl_plaintext.{key}": value for key, value in for_clients.items()},
    }


def _acls() -> dict[str, str]:
    """Everybody may do everything on a resource until an ACL names it."""
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        # Controllers talk to each other without a login.
        "super.users": "User:admin;User:broker;User:ANONYMOUS",
    }


def _small_topics(replicas: int) -> dict[str, str]:
    internal = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    return {
        "num.partitions": "3",
        "default.replication.factor": str(replicas),
        **{f"{topic}.replication.factor": str(replicas) for topic in internal},
        **{f"{topic}.num.partitions": "3" for topic in internal},
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def _telemetry(ports: Mapping[int, Ports], credentials: Credentials) -> dict[str, str]:
    login = {"security.protocol": "SASL_PLAINTEXT", **credentials.client_login("broker")}
    return {
        # A receiver alone would replace JmxReporter, and Kafka's own beans would be missing.
        "metric.reporters": (
            "org.apache.kafka.common.metrics.JmxReporter,quotaflow.TelemetryReceiver"
        ),
        "quotaflow.telemetry.topic": TELEMETRY_TOPIC,
        "quotaflow.telemetry.bootstrap.servers": ",".join(
            f"{LOOPBACK}:{of_node.internal}" for of_node in ports.values()
        ),
        **{f"quotaflow.telemetry.producer.{key}": value for key, value in login.items()},
    }
