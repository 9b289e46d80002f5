"""Traffic for the demo: clients that behave well and badly, seeded, finite, all on 127.0.0.1.

alice produces steadily; bob in transactions; carol and bob read from their own racks (KIP-392),
heidi declares none; mallory makes a new producer for every batch (KIP-936), erin restarts in a
loop, frank takes new transactional ids at every checkpoint, grace deploys a fleet; dave runs into a
byte quota; an admin changes configs, some wrongly, and moves a partition under a throttle (KIP-73).
Raw connections push telemetry and read offsets as no client library does.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any

from quotaflow.demo import (
    raw_pushes,
    traffic_clients,
    traffic_configs,
    traffic_ids,
    traffic_java,
    traffic_reads,
)
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.traffic_report import ClientReport, ConfigCall, Move, TrafficReport
from quotaflow.demo.traffic_stage import Stage
from quotaflow.pipelines.errors import ConfigError

__all__ = ["ClientReport", "TrafficReport", "run"]

DURATION_S = 12.0
"""How long clients keep their pace at scale 1; a push interval is one second."""

MIN_SCALE = 0.5
"""Below six seconds too few telemetry pushes would come from each client."""

DAVE_QUOTA_BYTES_PER_S = 20_000
MALLORY_PRODUCERS = 100
"""How many producers mallory makes at scale 1."""

_QUOTA_WINDOW_S = 11
_MOVE_BYTES_PER_S = 1_500_000
_BULK_BYTES = 4_500_000
"""It moves in three seconds."""

_PARTITIONS = 3
_RECORD_BYTES = 1_000
_BULK_RECORD_BYTES = 20_000

TOPICS: dict[str, dict[str, Any]] = {
    "orders": {"num_partitions": _PARTITIONS, "replication_factor": 3},
    "payments": {"num_partitions": _PARTITIONS, "replication_factor": 3},
    "clicks": {"num_partitions": _PARTITIONS, "replication_factor": 2},
    "exports": {"num_partitions": 1, "replication_factor": 1},
    "bulk": {"assignments": {0: [1]}},
    traffic_reads.TOPIC: {"num_partitions": 1, "replication_factor": 3},
}


def run(
    cluster: LocalCluster,
    seed: int = 0,
    scale: float = 1.0,
    progress: Callable[[str], None] = lambda _: None,
    prepared: Callable[[], None] = lambda: None,
) -> TrafficReport:
    """Run every client and report its work; about 20 s at scale 1 on two cores.

    Calls `prepared` once topics, quota and subscription are there, before any client works.
    Interrupted, it ends every thread and child process before it passes the interrupt on.
    """
    if scale < MIN_SCALE:
        raise ConfigError(f"scale {scale:g} is under {MIN_SCALE:g}: clients would push too little")
    stage = Stage(cluster, seed, DURATION_S * scale)
    began_ms = _now_ms()
    topic_ids, quota_call = _prepare(cluster)
    prepared()
    progress("clients at work")
    with ThreadPoolExecutor(18, "traffic") as pool:
        clients = _start_clients(stage, pool)
        calls = pool.submit(traffic_configs.churn, stage)
        move = pool.submit(_move, stage, clients["rdk-bulk-alice"])
        reads = pool.submit(traffic_reads.work, stage)
        pushes = pool.submit(raw_pushes.push_all, cluster)
        others: dict[str, Future[Any]] = {"config changes": calls, "the throttled move": move}
        others |= {traffic_reads.CLIENT: reads, "raw-*": pushes}
        try:
            _await({**clients, **others}, progress)
        finally:
            stage.stop.set()
    return TrafficReport(
        cluster_id=cluster.cluster_id,
        seed=seed,
        scale=scale,
        began_ms=began_ms,
        ended_ms=_now_ms(),
        topic_ids=topic_ids,
        clients=tuple(client.result() for client in clients.values()),
        config_calls=(quota_call, *calls.result()),
        move=move.result(),
        reads=reads.result(),
        push_errors=pushes.result(),
    )


def _prepare(cluster: LocalCluster) -> tuple[dict[str, str], ConfigCall]:
    """Topics and their ids, dave's quota, and a subscription to every client's metrics."""
    with cluster.admin() as admin:
        topic_ids = traffic_configs.make_topics(admin, TOPICS)
        quota = traffic_configs.set_quota("dave", "producer_byte_rate", DAVE_QUOTA_BYTES_PER_S)
        quota_call = quota(admin)
        traffic_configs.subscribe(admin, cluster, "everything")
    return topic_ids, quota_call


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _load(stage: Stage, user: str, client_id: str) -> ClientReport:
    """Fill `bulk` as fast as it goes."""
    at_once = replace(stage, duration_s=0.0)
    records = _BULK_BYTES * 4 // (3 * _BULK_RECORD_BYTES)
    return traffic_clients.steady(
        at_once, user, client_id, "bulk", records=records, bytes_each=_BULK_RECORD_BYTES
    )


def _offend(
    stage: Stage, user: str, client_id: str, *, after: Future[ClientReport]
) -> ClientReport:
    """Begin when every broker has producer ids: it refuses the first requests after its start."""
    after.result()
    return traffic_clients.new_producer_per_batch(
        stage,
        user,
        client_id,
        "clicks",
        producers=round(MALLORY_PRODUCERS * stage.duration_s / DURATION_S),
        partitions=_PARTITIONS,
    )


def _move(stage: Stage, loaded: Future[ClientReport]) -> Move:
    """Move `bulk` once it is full."""
    loaded.result()
    return traffic_configs.move(
        stage,
        "bulk",
        size_bytes=_BULK_BYTES,
        throttle_bytes_per_s=_MOVE_BYTES_PER_S,
    )


def _start_clients(stage: Stage, pool: ThreadPoolExecutor) -> dict[str, Future[ClientReport]]:
    """Client id -> its report to come."""
    seconds = stage.duration_s
    orders_java, orders_rdk = round(60 * seconds), round(60 * seconds)
    dave_bytes = DAVE_QUOTA_BYTES_PER_S * (_QUOTA_WINDOW_S + seconds / 2)
    started: dict[str, Future[ClientReport]] = {}

    def start(work: Callable[..., ClientReport], user: str, client_id: str, **share: Any) -> None:
        started[client_id] = pool.submit(work, stage, user, client_id, **share)

    orders = {"topic": "orders", "bytes_each": _RECORD_BYTES}
    readers = {"topic": "orders", "records": orders_java + orders_rdk}
    java, rdk = traffic_java, traffic_clients
    start(_load, "alice", "rdk-bulk-alice")
    start(java.steady, "alice", "java-orders-alice", records=orders_java, **orders)
    start(rdk.steady, "alice", "rdk-orders-alice", records=orders_rdk, **orders)
    start(
        *(java.transactional, "bob", "java-payments-bob"),
        topic="payments",
        records=round(30 * seconds),
        bytes_each=300,
    )
    start(
        *(rdk.transactional, "bob", "rdk-payments-bob"),
        topic="payments",
        transactions=round(1.5 * seconds),
    )
    start(rdk.consume, "carol", "rdk-orders-carol", rack="az-c", group="carol-orders", **readers)
    start(java.consume, "bob", "java-orders-bob", rack="az-b", group="bob-orders", **readers)
    start(rdk.consume, "heidi", "rdk-orders-heidi", rack="", group="heidi-orders", **readers)
    after = started["rdk-bulk-alice"]
    start(_offend, "mallory", "rdk-clicks-mallory", after=after)
    start(traffic_ids.restart_loop, "erin", "raw-invoices-erin", after=after)
    start(traffic_ids.new_transactional_ids, "frank", "raw-ledger-frank", after=after)
    start(traffic_ids.deploy, "grace", "raw-pod-*-grace", after=after)
    start(
        *(rdk.steady, "dave", "rdk-exports-dave"),
        topic="exports",
        records=round(dave_bytes / (_RECORD_BYTES * 3 / 4)),
        bytes_each=_RECORD_BYTES,
    )
    return started


def _await(work: dict[str, Future[Any]], progress: Callable[[str], None]) -> None:
    """Wait for all; the first that fails ends the rest."""
    names = {future: name for name, future in work.items()}
    for done, future in enumerate(as_completed(names), 1):
        future.result()
        progress(f"{done}/{len(names)} done: {names[future]}")
