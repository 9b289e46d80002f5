"""Groups side by side, each slowed down by one cause, and one that keeps up, in real time."""

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from confluent_kafka import Producer

from quotaflow.demo import java_classes, request_lines
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.jvm import Jvm
from quotaflow.demo.request_lines import Line
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.spark.java import compiler

from . import quiet_clients, quota_limits

PREFIX = "lag-"
LOG = f"{PREFIX}request-log"
KEEPS_UP = f"{PREFIX}keeps-up"
LIMITED, THROTTLED = f"{PREFIX}fetch_limited", f"{PREFIX}throttled"
OPEN = f"{PREFIX}open_transaction"
SKEWED, STOPPING = f"{PREFIX}skewed_partitions", f"{PREFIX}rebalancing"
TIMEOUTS = "session.timeout.ms=6000 heartbeat.interval.ms=500"
THROTTLED_USER, QUOTA = "ivan", 20_000
MEMBERS = (
    f"{KEEPS_UP} works 0",
    f"{THROTTLED} works 0",
    f"{LIMITED} works 0 fetch.max.bytes=500",
    f"{PREFIX}slow_processing works 20 max.poll.records=50 group.protocol=consumer",
    f"{PREFIX}not_polling stops 0",
    f"{PREFIX}paused pauses 0 group.protocol=consumer",
    f"{PREFIX}no_members leaves 0",
    *(f"{SKEWED} works 10 max.poll.records=50",) * 2,
    f"{STOPPING} works 5 max.poll.records=50 {TIMEOUTS}",
    f"{STOPPING} crashes 5 max.poll.records=50 {TIMEOUTS}",
    f"{OPEN} works 0 isolation.level=read_committed",
    f"{PREFIX}stuck_partition skips 0",
    f"{PREFIX}not_subscribed moves 0",
    f"{PREFIX}never_committed waits 0 enable.auto.commit=false",
    *(f"{PREFIX}fenced_instance fences 20 max.poll.records=20 group.instance.id=node-1",) * 2,
)
"""Group, which is topic and client id too, way, milliseconds for a record, and configs."""

GROUPS = sorted({member.split()[0] for member in MEMBERS})
"""But for the one that keeps up, their names are those of their causes."""

_PARTITIONS, _RECORD_BYTES = 4, 250
_PER_S = 100
_RATES = {THROTTLED: 400, STOPPING: 150}
_HOT_PER_S = 300
_TICK_S = 0.1
_BACKLOG = 400_000
"""Batches of one record each, so that an answer has one of them: more than are read in the time."""
_STEP_S, _STEPS = 65.0, 3
"""Three minutes: an offset that does not move for so long is at rest."""
_SECTIONS = (
    *("brokers", "topics", "client_quotas", "settings"),
    *("groups", "group_assignments", "group_offsets", "partition_offsets"),
    *("active_producers", "transactional_ids"),
)
_SOURCE = Path(__file__).with_name("LaggingGroups.java")


@dataclass
class _Writers:
    """Producers of all topics at an even pace."""

    cluster: LocalCluster
    stop: Event = field(default_factory=Event)

    def fill(self) -> None:
        """What the one with small fetches has to read first."""
        producer = self._producer(**{"batch.num.messages": 1, "linger.ms": 0, "acks": 1})
        for n in range(_BACKLOG):
            while True:
                try:
                    producer.produce(LIMITED, bytes(_RECORD_BYTES), partition=n % _PARTITIONS)
                    break
                except BufferError:
                    producer.poll(_TICK_S)
            producer.poll(0)
        assert producer.flush(60) == 0

    def write(self) -> None:
        """Until the end; of the skewed topic one partition gets most."""
        producer, began_s, ticks = self._producer(), time.monotonic(), 0
        while not self.stop.wait(max(0.0, began_s + ticks * _TICK_S - time.monotonic())):
            ticks += 1
            for topic in GROUPS:
                for n in range(round(_RATES.get(topic, _PER_S) * _TICK_S)):
                    producer.produce(topic, bytes(_RECORD_BYTES), partition=n % _PARTITIONS)
            for _ in range(round(_HOT_PER_S * _TICK_S)):
                producer.produce(SKEWED, bytes(_RECORD_BYTES), partition=0)
            producer.poll(0)
        assert producer.flush(30) == 0

    def _producer(self, **config: object) -> Producer:
        login = self.cluster.librdkafka_properties("alice") | {"enable.metrics.push": False}
        return Producer(login | {"client.id": f"{PREFIX}writer"} | config)


def play(cluster: LocalCluster, conf: Conf) -> None:
    """Until the last snapshot, while all are at work; then what brokers logged is in LOG."""
    cluster.create_topics(GROUPS, _PARTITIONS, replication_factor=1)
    cluster.create_topics([LOG], partitions=1, configs={"max.message.bytes": str(8 << 20)})
    cluster.subscribe_telemetry("lag", match=f"client_id={PREFIX}.*", interval_ms=5_000)
    writers = _Writers(cluster)
    writers.fill()
    began_ms = request_lines.now_ms()
    limited = quota_limits.consumer_byte_rate(cluster, THROTTLED_USER, QUOTA)
    with ThreadPoolExecutor(1, "lag") as pool, limited:
        written = pool.submit(writers.write)
        try:
            with _members(cluster) as members:
                _plant(members)
                with _open_transaction(cluster):
                    _take(conf)
                    for _ in range(_STEPS):
                        time.sleep(_STEP_S)
                        assert members.poll() is None
                        _take(conf)
        finally:
            writers.stop.set()
        written.result()
    time.sleep(request_lines.LOGGED_AFTER_S)
    lines = (line for line in request_lines.logged(cluster) if _is_ours(line, began_ms))
    request_lines.ship(cluster, LOG, lines)


@contextmanager
def _open_transaction(cluster: LocalCluster) -> Iterator[None]:
    """A transaction in each partition of a topic that is open until the end of the block."""
    settings = {"transactional_id": OPEN, "transaction_timeout_ms": 600_000}
    producer = quiet_clients.producer(cluster, "bob", **settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(_PARTITIONS):
        producer.produce(OPEN, bytes(_RECORD_BYTES), partition=partition)
    assert producer.flush(30) == 0
    yield
    producer.abort_transaction(30)


def _plant(members: "subprocess.Popen[bytes]") -> None:
    """Once all of them read."""
    assert members.stdin is not None
    assert members.stdout is not None
    for _ in [member for member in MEMBERS if not {"crashes", "fences"} & set(member.split())]:
        assert members.stdout.readline(), "the members ended"
    members.stdin.write(b"\n")
    members.stdin.flush()


def _is_ours(line: Line, began_ms: int) -> bool:
    client_id = line["r"]["requestHeader"]["clientId"] or ""
    return line["ts"] >= began_ms and client_id.startswith(PREFIX)


def _take(conf: Conf) -> None:
    take.take(conf, datetime.now(UTC), lambda _: None, _SECTIONS)


@contextmanager
def _members(cluster: LocalCluster) -> Iterator["subprocess.Popen[bytes]"]:
    """All members in a process that ends with the block."""
    jars = cluster.jars
    classes = cluster.folder / "lagging"
    flags = ("-Xlint:all,-path", "-Werror", "-cp", ":".join(map(str, jars)), "-d", str(classes))
    subprocess.run([*compiler(), *flags, str(_SOURCE)], check=True)
    jvm = Jvm([java_classes.compiled(jars), *jars], classes, cluster.folder)
    users = {THROTTLED: THROTTLED_USER}
    members = [
        f"{cluster.properties_file(users.get(member.split()[0], 'carol'))} {member}"
        for member in MEMBERS
    ]
    command = jvm.tool_command("LaggingGroups", *members)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()
