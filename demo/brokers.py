"""The broker processes of one demo cluster: written, formatted, started and stopped together."""

import random
import re
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from quotaflow.demo.broker_config import server_properties
from quotaflow.demo.broker_process import STOP_TIMEOUT_S, BrokerProcess
from quotaflow.demo.credentials import Credentials, write_private
from quotaflow.demo.jvm import Jvm
from quotaflow.demo.kafka_release import KafkaRelease
from quotaflow.demo.ports import LOOPBACK, free_ports
from quotaflow.pipelines.errors import KafkaError

START_TIMEOUT_S = 120.0
_WITHOUT_QUORUM_S = 2.0
"""The last controller waits 5 s and more for a successor that cannot come; its broker has flushed
by then, so it gets this long."""
_ATTEMPTS = 3


class BrokerGroup:
    """Combined KRaft nodes below `folder`; ports are chosen again when one was taken meanwhile."""

    def __init__(
        self,
        folder: Path,
        node_ids: Collection[int],
        credentials: Credentials,
        settings: Mapping[str, str],
    ) -> None:
        self.cluster_id = random_uuid()
        self._folder = folder
        self._node_ids = node_ids
        self._credentials = credentials
        self._settings = settings
        self.java_options: tuple[str, ...] = ()
        self._processes: dict[int, BrokerProcess] = {}
        self._choose_ports()

    def __getitem__(self, node_id: int) -> BrokerProcess:
        if node_id not in self._processes:
            started = ", ".join(map(str, self._processes)) or "none started"
            raise KafkaError(f"there is no broker {node_id}: {started}")
        return self._processes[node_id]

    @property
    def pids(self) -> dict[int, int]:
        """Broker id -> process id, of the brokers that run."""
        return {node_id: p.pid for node_id, p in self._processes.items() if p.pid is not None}

    def start(self, jvm: Jvm) -> None:
        """Start all nodes and wait until they accept connections."""
        name = jvm.release.layout
        layout = (files("quotaflow.broker") / name).read_text(encoding="utf-8")
        (self._folder / name).write_text(layout, encoding="utf-8")
        for attempt in range(1, _ATTEMPTS + 1):
            self._launch(jvm)
            try:
                self.await_listening(self._node_ids)
                break
            except KafkaError:
                lost_a_port = any(p.lost_its_port() for p in self._processes.values())
                if not lost_a_port or attempt == _ATTEMPTS:
                    raise
            self.kill_all()
            self._choose_ports()

    def await_listening(self, node_ids: Iterable[int]) -> None:
        """Wait until these brokers have started; a KafkaError has the output of one that died."""
        deadline = time.monotonic() + START_TIMEOUT_S
        waiting = set(node_ids)
        while waiting:
            for node_id in list(waiting):
                process = self[node_id]
                if not process.is_running:
                    raise KafkaError(f"broker {node_id} ended: {process.first_cause()}")
                if process.has_started():
                    waiting.remove(node_id)
            if time.monotonic() > deadline:
                raise KafkaError(f"brokers {sorted(waiting)} not up in {START_TIMEOUT_S:g} s")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop all within `STOP_TIMEOUT_S`; even if interrupted, none is left."""
        try:
            for process in self._processes.values():
                process.terminate()
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while (running := len(self.pids)) and time.monotonic() < deadline:
                if running <= len(self._processes) // 2:
                    deadline = min(deadline, time.monotonic() + _WITHOUT_QUORUM_S)
                time.sleep(0.05)
        finally:
            self.kill_all()

    def kill_all(self) -> None:
        """SIGKILL what still runs."""
        for process in self._processes.values():
            process.kill()

    def logs(self, node_id: int) -> Path:
        """The folder of a broker's logs."""
        return self._home(node_id) / "logs"

    def _choose_ports(self) -> None:
        chosen = free_ports(len(self._node_ids), random.SystemRandom())
        self.ports = dict(zip(self._node_ids, chosen, strict=True))

    def _launch(self, jvm: Jvm) -> None:
        confs = {node_id: self._configure(node_id, jvm.release) for node_id in self._node_ids}
        if not self._processes:
            self._format(jvm, confs)
        for node_id, conf in confs.items():
            command = jvm.broker_command(self._flags(node_id, jvm.release), str(conf))
            process = BrokerProcess(command, self.logs(node_id))
            self._processes[node_id] = process
            process.start()

    def _configure(self, node_id: int, release: KafkaRelease) -> Path:
        home = self._home(node_id)
        (home / "data").mkdir(parents=True, exist_ok=True)
        properties = server_properties(node_id, self.ports, home / "data", self._credentials)
        for key, value in {**release.settings, **self._settings}.items():
            name = key.removesuffix("+")
            properties[name] = properties[name] + value if name != key else value
        return write_private(home / "server.properties", properties)

    def _format(self, jvm: Jvm, confs: dict[int, Path]) -> None:
        """Kafka formats the first node; the others differ only in two ids: one JVM, not n."""
        first, *others = confs
        jvm.run(
            "kafka.tools.StorageTool",
            *("format", "-t", self.cluster_id, "-c", str(confs[first])),
            timeout_s=START_TIMEOUT_S,
        )
        data = self._home(first) / "data"
        for node_id in others:
            meta = (data / "meta.properties").read_text(encoding="utf-8")
            meta = re.sub(r"(?m)^node\.id=.*", f"node.id={node_id}", meta)
            meta = re.sub(r"(?m)^directory\.id=.*", f"directory.id={random_uuid()}", meta)
            (self._home(node_id) / "data" / "meta.properties").write_text(meta, encoding="utf-8")
            bootstrap = (data / "bootstrap.checkpoint").read_bytes()
            (self._home(node_id) / "data" / "bootstrap.checkpoint").write_bytes(bootstrap)

    def _home(self, node_id: int) -> Path:
        return self._folder / f"broker-{node_id}"

    def _flags(self, node_id: int, release: KafkaRelease) -> list[str]:
        jmx = "-Dcom.sun.management.jmxremote"
        port = self.ports[node_id].jmx
        return [
            *self.java_options,
            release.logging_flag(self._folder / release.layout),
            f"-Dkafka.logs.dir={self.logs(node_id)}",
            f"-Dquotaflow.broker.id={node_id}",
            *(f"{jmx}.port={port}", f"{jmx}.rmi.port={port}", f"{jmx}.host={LOOPBACK}"),
            *(f"{jmx}.authenticate=false", f"{jmx}.ssl=false"),
            f"-Djava.rmi.server.hostname={LOOPBACK}",
            "-Djava.net.preferIPv4Stack=true",
        ]


def random_uuid() -> str:
    """A Uuid as Kafka prints it; never with a leading dash, which tools read as an option."""
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
