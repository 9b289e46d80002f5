"""A real Kafka cluster on this machine: combined KRaft nodes, each in its own rack.

`python -m quotaflow.demo.cluster_command --folder DIR` starts one and stops it at Ctrl-C.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError as ClientError

from quotaflow.demo import java_classes
from quotaflow.demo.broker_config import LEASE_TOPIC, REQUEST_LOG_TOPIC, TELEMETRY_TOPIC, rack
from quotaflow.demo.brokers import START_TIMEOUT_S, BrokerGroup
from quotaflow.demo.credentials import CLIENTS, SCRAM_USER, Credentials, mechanism, write_private
from quotaflow.demo.jvm import Jvm
from quotaflow.demo.ports import LOOPBACK
from quotaflow.pipelines.errors import ConfigError, KafkaError
from quotaflow.pipelines.feedback.ledger import lease_topic
from quotaflow.pipelines.spark.jars import Progress, kafka_jars

MAX_NODES = 9
_PREFERRED = 0
_METADATA_TIMEOUT_S = 10


class LocalCluster:
    """Started by `with`, ended with it; the folder stays, with logs, data and passwords.

    Everything listens on 127.0.0.1 alone. JMX has no login: any user of this machine can use it,
    so start a cluster only on a machine that nobody else uses.
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 3,
        progress: Callable[[str], None] = lambda _: None,
        settings: Mapping[str, str] | None = None,
        *,
        java_options: Sequence[str] = (),
        class_path: Sequence[Path] = (),
        is_kept: bool = True,
        kafka: Callable[[Progress], Sequence[Path]] = kafka_jars,
    ) -> None:
        """`settings` are broker settings beside those of broker_config.py: a name that ends in '+'
        adds to the value there. `java_options` and `class_path` are of the brokers' JVMs too.
        A cluster whose data nobody needs afterwards is not kept: its brokers are killed.
        `kafka` gives the jars of another release.
        """
        if not 1 <= nodes <= MAX_NODES:
            raise ConfigError(f"a demo cluster has 1 to {MAX_NODES} nodes, not {nodes}")
        self.folder = folder.absolute()
        self.racks = {node_id: rack(node_id) for node_id in range(1, nodes + 1)}
        self._progress = progress
        self._credentials = Credentials()
        self._brokers = BrokerGroup(self.folder, self.racks, self._credentials, settings or {})
        self._brokers.java_options = tuple(java_options)
        self._class_path = tuple(class_path)
        self._is_kept = is_kept
        self._kafka = kafka

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._brokers.kill_all()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._progress("stopping the Kafka brokers")
        if self._is_kept:
            self._brokers.stop()
        else:
            self._brokers.kill_all()

    @property
    def cluster_id(self) -> str:
        """The cluster's id as Kafka prints it."""
        return self._brokers.cluster_id

    @property
    def bootstrap_servers(self) -> str:
        """The client listeners of all brokers."""
        return ",".join(f"{LOOPBACK}:{ports.client}" for ports in self._brokers.ports.values())

    @property
    def jars(self) -> Sequence[Path]:
        """The class path of the brokers."""
        return self._jvm.jars

    @property
    def request_logs(self) -> dict[int, Path]:
        """Broker id -> the file its request log is written to (older parts: requests.<n>.jsonl)."""
        return {node_id: self._brokers.logs(node_id) / "requests.jsonl" for node_id in self.racks}

    @property
    def jmx_ports(self) -> dict[int, int]:
        """Broker id -> the port JMX answers on."""
        return {node_id: ports.jmx for node_id, ports in self._brokers.ports.items()}

    @property
    def pids(self) -> dict[int, int]:
        """Broker id -> process id, of the brokers that run."""
        return self._brokers.pids

    def client_properties(self, user: str) -> dict[str, str]:
        """Properties of a Java client that logs in as `user`; they hold the password."""
        return self._over_sasl() | self._credentials.client_login(user)

    def librdkafka_properties(self, user: str) -> dict[str, str]:
        """Properties of a librdkafka client that logs in as `user`; they hold the password."""
        # librdkafka ignores case by the rules of the locale, and its own value is in lower case: a
        # Turkish I is not the capital of i.
        protocol = self._over_sasl()["security.protocol"].lower()
        login = self._credentials.librdkafka_login(user)
        return self._over_sasl() | {"security.protocol": protocol} | login

    def properties_file(self, user: str) -> Path:
        """`client_properties` as a file of mode 0600, for --command-config."""
        self._credentials.password(user)
        return self.folder / f"{user}.properties"

    def admin(self, user: str = "admin", **config: Any) -> KafkaAdminClient:
        """An admin client that logs in as `user`; close it, or use it in a `with`."""
        settings = {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism(user),
            "sasl_plain_username": user,
            "sasl_plain_password": self._credentials.password(user),
            "client_id": "quotaflow-demo",
        }
        # It warns at every login that the password is not encrypted: here it never leaves loopback.
        logging.getLogger("kafka.net.sasl").setLevel(logging.ERROR)
        return KafkaAdminClient(**(settings | config))

    def java_command(self, main_class: str, *args: str) -> list[str]:
        """A command that starts a long-running Java client; passwords belong in properties files.

        With `quotaflow.Tethered` as main class, the client's own as first argument, and standard
        input a pipe that is kept open, the client ends with this process however that ends.
        """
        return self._jvm.tool_command(main_class, *args)

    def run_tool(self, main_class: str, *args: str, timeout_s: float = 60) -> str:
        """Run one of Kafka's console tools; its standard output. Raises KafkaError if it fails."""
        return self._jvm.run(main_class, *args, timeout_s=timeout_s)

    def create_topics(
        self,
        names: Iterable[str],
        partitions: int = 3,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create topics, by default on up to three brokers, and wait until they have leaders."""
        topic = {
            "num_partitions": partitions,
            "replication_factor": replication_factor or min(3, len(self.racks)),
            "configs": dict(configs or {}),
        }
        with self.admin() as admin:
            admin.create_topics(dict.fromkeys(names, topic), wait_for_metadata=True)

    def subscribe_telemetry(
        self, name: str, metrics: str = "*", interval_ms: int = 1000, match: str = ""
    ) -> None:
        """Subscribe to metrics of these prefixes, of all clients or those of `match` (KIP-714)."""
        configs = {"metrics": metrics, "interval.ms": str(interval_ms)}
        if match:
            configs["match"] = match
        with self.admin() as admin:
            resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, name, configs)
            answer = admin.alter_configs([resource], raise_on_unknown=False)["client_metrics"][name]
        if answer != "OK":
            raise KafkaError(f"the cluster refused subscription {name}: {answer}")

    def partitions_at(self, node_id: int, topic: str) -> dict[int, Any]:
        """Partitions by number, as one broker describes them to a new client."""
        server = f"{LOOPBACK}:{self._brokers.ports[node_id].client}"
        login: dict[str, Any] = {
            **self.librdkafka_properties("admin"),
            "bootstrap.servers": server,
            "enable.metrics.push": False,
        }
        admin = AdminClient(login)
        return dict(admin.list_topics(topic, timeout=_METADATA_TIMEOUT_S).topics[topic].partitions)

    def start_broker(self, node_id: int) -> None:
        """Start a stopped broker, wait until it answers, and make it a leader again."""
        self._brokers[node_id].start()
        self._brokers.await_listening([node_id])
        self._await_members()
        deadline = time.monotonic() + START_TIMEOUT_S
        with self.admin() as admin:
            while _leads_elsewhere(admin, node_id):
                if time.monotonic() > deadline:
                    raise KafkaError(f"broker {node_id} does not get its leaders back")
                admin.elect_leaders(_PREFERRED, raise_errors=False)
                time.sleep(0.2)

    def stop_broker(self, node_id: int) -> None:
        """Stop one broker cleanly, or kill it if it does not end in time."""
        self._brokers[node_id].terminate()
        self._brokers[node_id].await_end()

    def kill_broker(self, node_id: int) -> None:
        """SIGKILL one broker."""
        self._brokers[node_id].kill()

    def _over_sasl(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT"}

    def _start(self) -> None:
        jars = self._kafka(self._progress)
        self._jvm = Jvm([*jars, *self._class_path], java_classes.compiled(jars), self.folder)
        self._make_folder()
        self._progress(f"starting {len(self.racks)} Kafka brokers")
        self._brokers.start(self._jvm)
        for user in CLIENTS:
            write_private(self.properties_file(user), self.client_properties(user))
        self._add_scram_user()
        self._await_members()
        self.create_topics([REQUEST_LOG_TOPIC], 3, 1, {"max.message.bytes": str(8 << 20)})
        self.create_topics([TELEMETRY_TOPIC], 3, 1, {"max.message.bytes": str(4 << 20)})
        # Leases of config changes. One replica, so that no follower's fetches are in the log.
        self.create_topics([LEASE_TOPIC], 1, 1, lease_topic.CONFIGS)

    def _make_folder(self) -> None:
        if self.folder.exists() and any(self.folder.iterdir()):
            raise ConfigError(f"{self.folder} is not empty: a demo cluster starts in a new folder")
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _add_scram_user(self) -> None:
        """By the admin API: StorageTool would show the password in the process list."""
        password = self._credentials.password(SCRAM_USER)
        user = UserScramCredentialUpsertion(SCRAM_USER, ScramMechanism.SCRAM_SHA_256, password)
        with self.admin() as admin:
            refused = admin.alter_user_scram_credentials([user])[SCRAM_USER]
        if refused:
            raise KafkaError(f"the cluster refused SCRAM user {SCRAM_USER}: {refused}")

    def _await_members(self) -> None:
        """Wait until every running broker accepts the SCRAM user and knows all that run."""
        deadline = time.monotonic() + START_TIMEOUT_S
        for node_id in self.pids:
            while not self._knows_the_others(node_id):
                if time.monotonic() > deadline:
                    raise KafkaError(f"broker {node_id} does not see {sorted(self.pids)}")
                time.sleep(0.1)

    def _knows_the_others(self, node_id: int) -> bool:
        server = f"{LOOPBACK}:{self._brokers.ports[node_id].client}"
        try:
            with self.admin(SCRAM_USER, bootstrap_servers=[server]) as admin:
                seen = admin.describe_cluster()["brokers"]
        except ClientError:
            return False
        return set(self.pids) <= {b["broker_id"] for b in seen if not b.get("is_fenced")}


def _leads_elsewhere(admin: KafkaAdminClient, node_id: int) -> bool:
    """Whether another broker leads a partition that prefers this one (it is not in sync yet)."""
    partitions = [p for topic in admin.describe_topics() for p in topic["partitions"]]
    return any(p["replica_nodes"][0] == node_id != p["leader_id"] for p in partitions)
