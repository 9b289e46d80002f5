"""A consumer reads records that a broker has in remote storage only (KIP-405).

The storage is Kafka's own LocalTieredStorage. The broker's beans count beside what the tables say.
"""

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quotaflow.demo import request_lines
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.ports import LOOPBACK, free_ports
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.spark.jars import jar_set

from . import quiet_clients
from .conftest import QUICK, by_reference, conf_of_scene
from .jmx import jmx
from .readers import await_so
from .tables_read import query

pytestmark = pytest.mark.faults
TOPIC, READER, GROUP, USER = "archive", "rdk-replays", "replays", "carol"
RECORDS, RECORD_BYTES, SEGMENT_BYTES = 6_000, 1_000, 1 << 20
PARTITION_BYTES = 100_000
"""What the reader takes in an answer: several are within a segment."""
TIMEOUT_S = 300.0
JOBS = ["ingest_request_log", "fetches", "fetch_results", "request_results"]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker with remote storage; the client that keeps its metadata logs in nowhere."""
    folder = tmp_path_factory.mktemp("tiered")
    (ports,) = free_ports(1, random.SystemRandom())
    listener = f",PLAIN://{LOOPBACK}:{ports.client}"
    storage = "remote.log.storage.manager"
    settings = {
        "listeners+": listener,
        "advertised.listeners+": listener,
        "listener.security.protocol.map+": ",PLAIN:PLAINTEXT",
        "remote.log.storage.system.enable": "true",
        f"{storage}.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "rsm.config.dir": str(folder / "remote"),
        "remote.log.metadata.manager.listener.name": "PLAIN",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
    }
    jars = jar_set("tiered-jars", Path(__file__).parent)
    with LocalCluster(
        folder / "cluster", 1, settings=settings, class_path=jars, is_kept=False
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def filled(tiered: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the reads of a client of a group, from the first record to the last."""
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        login = by_reference(tiered, "TIERED_JAAS", patch)
        conf = conf_of_scene(login, folder, REQUEST_LOG_TOPIC, *QUICK)
        write(tiered)
        await_tiers(conf)
        began_ms = request_lines.now_ms()
        read(tiered)
        time.sleep(request_lines.LOGGED_AFTER_S)
        lines = (line for line in request_lines.logged(tiered) if line["ts"] >= began_ms)
        request_lines.ship(tiered, REQUEST_LOG_TOPIC, lines)
        runner.run(conf, JOBS, None, lambda _: None)
    return conf.warehouse.folder


def write(cluster: LocalCluster) -> None:
    """Segments of which the local disk keeps the last."""
    configs = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
    configs |= {"segment.bytes": str(SEGMENT_BYTES)}
    cluster.create_topics([TOPIC], partitions=1, configs=configs)
    producer = quiet_clients.producer(cluster, "alice", batch_size=10_000)
    for n in range(RECORDS):
        producer.produce(TOPIC, random.Random(n).randbytes(RECORD_BYTES))
        producer.poll(0)
    assert producer.flush(30) == 0


def await_tiers(conf: Conf) -> None:
    """Take snapshots until the local log starts in the last segment."""
    last = RECORDS - 2 * SEGMENT_BYTES // RECORD_BYTES

    def is_tiered() -> bool:
        take.take(conf, datetime.now(UTC), lambda _: None)
        return local_start(conf.warehouse.folder) >= last

    await_so(is_tiered)


def local_start(folder: Path) -> int:
    """Of the last snapshot; 0: none, or it saw none."""
    if not (folder / "partition_offsets").is_dir():
        return 0
    (row,) = query(
        folder,
        "SELECT coalesce(max(local_log_start_offset), 0) AS first FROM partition_offsets "
        f"WHERE topic = '{TOPIC}'",
    )
    return int(row["first"])


def read(cluster: LocalCluster) -> None:
    """All, as a member of a group."""
    login, size = cluster.librdkafka_properties(USER), PARTITION_BYTES
    count, deadline_s = 0, time.monotonic() + TIMEOUT_S
    with quiet_clients.reader(
        login, TOPIC, GROUP, READER, max_partition_fetch_bytes=size
    ) as consumer:
        while count < RECORDS:
            assert time.monotonic() < deadline_s, count
            messages = consumer.consume(500, 0.2)
            assert [message for message in messages if message.error()] == []
            count += len(messages)


@pytest.fixture(scope="module")
def reads(filled: Path) -> Row:
    (row,) = query(filled, "SELECT * FROM remote_reads_by_hour")
    return row


def test_who_read_from_remote_storage_is_named(reads: Row) -> None:
    names = ("principal", "client_id", "group_id", "groups", "topic")
    assert [reads[name] for name in names] == [f"User:{USER}", READER, GROUP, 1, TOPIC]


def test_bytes_and_answers_are_those_that_the_broker_counted(
    tiered: LocalCluster, filled: Path, reads: Row
) -> None:
    beans = [f"RemoteFetch{what}PerSec" for what in ("Bytes", "Requests", "Errors")]
    pattern = "kafka.server:type=BrokerTopicMetrics,name={},topic=" + TOPIC
    counted = jmx(tiered, 1, *map(pattern.format, beans))
    # A bean that counted nothing is not there.
    given, requests, errors = (
        int(counted.get(f"{pattern.format(name)}:Count", 0)) for name in beans
    )
    assert errors == 0
    assert reads["bytes"] == given >= local_start(filled) * RECORD_BYTES
    assert reads["fetches"] == requests >= given // PARTITION_BYTES


def test_the_time_of_the_reads_is_what_the_log_says(tiered: LocalCluster, reads: Row) -> None:
    assert reads["fetch_time_ms"] > 0
    logged = sum(
        line["r"]["totalTimeMs"]
        for line in request_lines.logged(tiered)
        if line["r"]["requestHeader"]["clientId"] == READER
        and line["r"]["requestHeader"]["requestApiKeyName"] == "FETCH"
    )
    assert reads["fetch_time_ms"] <= logged
