"""Quotas on all eight levels of a real broker: limit, entity and rate against what it says."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.request_lines import logged
from quotaflow.pipelines.config import QuotasSection
from quotaflow.pipelines.results.declared import result_of

from ..rows import row
from ..rule_rows import Rows, compute
from . import quiet_clients
from .drive import parsed
from .jmx import jmx
from .quota_levels import ANY, FETCHED, LEVELS, PRODUCED, TIME, limit, set_quotas

CLIENTS = {"q-1": "alice", "q-2": "alice", "q-3": "bob", "q-4": "carol", "q-5": "frank"}
CONSUMERS = {"q-6": "carol", "q-7": "alice"}
RECORD_BYTES, RECORDS_PER_S = 50_000, 20
UNEVEN = 3
"""So many requests a second more or fewer move the rate of 11 s by less than its bound."""
WINDOWS_TRIED = 12
RATE_PERIOD_S = QuotasSection().rate_period_s
_BROKER_LINE = re.compile(
    r"Sensor for quota-id \{user=(.*), client-id=(.*)\} already exists\. Setting quota to (\S+) in"
)


@dataclass(frozen=True)
class Traffic:
    """Clients at an even pace on a topic of one partition."""

    cluster: LocalCluster
    topic: str
    stop: Event = field(default_factory=Event)

    def produce(self, user: str, client_id: str, per_s: float) -> None:
        record = Random(client_id).randbytes(RECORD_BYTES)
        producer = quiet_clients.producer(self.cluster, user, client_id=client_id, linger_ms=0)
        began, sent = time.monotonic(), 0
        while not self.stop.wait(max(0.0, began + sent / per_s - time.monotonic())):
            producer.produce(self.topic, record)
            producer.poll(0)
            sent += 1
        producer.flush(10)

    def consume(self, user: str, client_id: str) -> None:
        settings = {"client.id": client_id, "group.id": client_id} | quiet_clients.QUIET
        consumer = Consumer(self.cluster.librdkafka_properties(user) | settings)
        consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
        while not self.stop.is_set():
            consumer.poll(0.2)
        consumer.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(len(CLIENTS) + len(CONSUMERS)) as pool:
            paces = dict.fromkeys(CLIENTS, 2.0) | {"q-1": float(RECORDS_PER_S)}
            done = [pool.submit(self.produce, CLIENTS[c], c, paces[c]) for c in CLIENTS]
            done += [pool.submit(self.consume, user, c) for c, user in CONSUMERS.items()]
            try:
                yield
            finally:
                self.stop.set()
            for client in done:
                client.result()


def quotas(cluster: LocalCluster, since: datetime) -> Rows:
    """The quotas as a snapshot would have them."""
    users = {"cluster_id": cluster.cluster_id, "is_default_ip": False}
    return [
        row("client_quotas", since, users, config_key=key, quota=limit(level, key))
        | {"user": user or None, "is_default_user": user == ANY}
        | {"client_id": client_id or None, "is_default_client_id": client_id == ANY}
        for (level, key), (user, client_id) in LEVELS.items()
    ]


def is_steady(cluster: LocalCluster, begin_s: int) -> bool:
    """Whether the fast producer kept its pace in the seconds of the broker's window and of ours.

    The rate of ours is the broker's only then: the broker's begins a second before, and a producer
    that was muted for what it sent, or had no processor, sends what it owes in one burst.
    """
    by_second = Counter(
        line["ts"] // 1_000
        for line in logged(cluster)
        if line["r"]["requestHeader"]["clientId"] == "q-1"
        and line["r"]["requestHeader"]["requestApiKeyName"] == "PRODUCE"
    )
    seconds = range(begin_s - 1, begin_s + RATE_PERIOD_S - 1)
    return all(abs(by_second[second] - RECORDS_PER_S) <= UNEVEN for second in seconds)


def usage_of(cluster: LocalCluster, window: datetime, since: datetime) -> Rows:
    """Rows of quota_usage for our clients in one window, from the request logs."""
    begin_ms = window.timestamp() * 1_000
    lines = [
        line
        for line in logged(cluster)
        if begin_ms <= line["ts"] < begin_ms + RATE_PERIOD_S * 1_000
        and (line["r"]["requestHeader"]["clientId"] or "").startswith("q-")
    ]
    return compute(
        result_of("quota_usage"),
        requests=parsed(cluster, lines).to_pylist(),
        client_quotas=quotas(cluster, since),
    )


def bucket(row: dict[str, Any]) -> tuple[str, str, str]:
    """What a row's limit is counted on, as a broker tags it."""
    return row["quota_type"], row["quota_bucket_user"] or "", row["quota_bucket_client_id"] or ""


def logged_by_broker(cluster: LocalCluster, broker_id: int) -> dict[tuple[str, str, str], float]:
    """The last limit in the broker's log of each bucket."""
    log = cluster.request_logs[broker_id].with_name("server.log").read_text(encoding="utf-8")
    limits = {}
    for user, client_id, bound in _BROKER_LINE.findall(log):
        kinds = [key for level, key in LEVELS if limit(level, key) == float(bound)]
        for key in kinds:
            limits[key, user, client_id] = float(bound)
    return limits


def rates(cluster: LocalCluster, broker_id: int) -> dict[tuple[str, str, str], float]:
    """What the broker measures now, by bucket; beans omit what does not identify a bucket."""
    kinds = {"Produce": PRODUCED, "Fetch": FETCHED, "Request": TIME}
    measured = {}
    beans = jmx(cluster, broker_id, *(f"kafka.server:type={kind},*" for kind in kinds))
    for name, value in beans.items():
        bean, _, attribute = name.rpartition(":")
        if attribute in {"byte-rate", "request-time"}:
            tags = dict(part.split("=") for part in bean.partition(":")[2].split(","))
            kind = kinds[tags["type"]]
            measured[kind, tags.get("user", ""), tags.get("client-id", "")] = float(value)
    return measured


@pytest.mark.parametrize(
    "windows",
    [pytest.param(1, id="11 s"), pytest.param(4, id="44 s", marks=pytest.mark.faults)],
)
@pytest.mark.shows("finds the quota that applies, of eight levels")
def test_limit_entity_and_rate_are_the_brokers(cluster: LocalCluster, windows: int) -> None:
    topic = f"quotas-{uuid4().hex[:8]}"
    cluster.create_topics([topic], partitions=1, replication_factor=1)
    with cluster.admin() as admin:
        leader: int = admin.describe_topics([topic])[0]["partitions"][0]["leader_id"]
    traffic = Traffic(cluster, topic)
    try:
        set_quotas(cluster, 1_000.0)
        with traffic.running():
            time.sleep(3)
            since = datetime.now(UTC)
            set_quotas(cluster, 0.0)
            for later in (windows, *[1] * WINDOWS_TRIED):
                last_s = (int(time.time() + 1) // RATE_PERIOD_S + later) * RATE_PERIOD_S
                # The broker's rate is that of the 11 s before the query.
                time.sleep(last_s + RATE_PERIOD_S - 1 - time.time())
                measured = [rates(cluster, leader) for _ in range(3)]
                if is_steady(cluster, last_s):
                    break
        logged = logged_by_broker(cluster, leader)
    finally:
        set_quotas(cluster, None)
    assert is_steady(cluster, last_s)
    window = datetime.fromtimestamp(last_s, UTC)
    rows = [r for r in usage_of(cluster, window, since) if r["broker_id"] == leader]
    assert {r["event_time"] for r in rows} == {window}

    levels = {(row["client_id"], row["quota_type"]): row["quota_level"] for row in rows}
    assert {n: levels[f"q-{n}", PRODUCED] for n in range(1, 6)} == {n: n for n in range(1, 6)}
    assert levels["q-6", FETCHED] == levels["q-7", FETCHED] == 6
    assert levels["q-7", TIME] == 7
    assert {levels[client_id, TIME] for client_id in CLIENTS} == {8}
    ours = {bucket(each): each["quota"] for each in rows}
    assert {client: logged.get(client) for client in ours} == ours
    assert {bucket(row) for row in rows} <= measured[0].keys()

    steady = [row for row in rows if (row["client_id"], row["quota_type"]) == ("q-1", PRODUCED)]
    by_broker = sum(rate[bucket(steady[0])] for rate in measured) / len(measured)
    assert steady[0]["usage"] == pytest.approx(by_broker, rel=0.05)
