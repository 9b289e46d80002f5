"""Consumers in three racks, in none and in one nobody has, and what happens to two of them.

Two acts on the shared cluster: all is well; then a leader moves, and a follower falls behind.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Self

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer import ListOffsetsRequest

from quotaflow.demo import traffic_configs
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.config import Conf

from . import quiet_clients
from .cluster_actions import Acts
from .readers import Readers, await_so

PREFIX = "racks-"
SPREAD, LAGGING, MOVED = f"{PREFIX}spread", f"{PREFIX}lagging", f"{PREFIX}moved"
FULL, LARGE, LOG = f"{PREFIX}full", f"{PREFIX}large", f"{PREFIX}log"
NO_RACK, STRAY, TINY = f"{PREFIX}none", f"{PREFIX}stray", f"{PREFIX}tiny"
HUGE, SHORT, STICKY = f"{PREFIX}huge", f"{PREFIX}short", f"{PREFIX}sticky"
LATE, REDIRECTED = f"{PREFIX}late", f"{PREFIX}redirected"

NOWHERE = "az-x"
RECORDS, RECORD_BYTES = 100, 1_000
FULL_RECORDS, BATCH_BYTES = 300, 5_000
LARGE_RECORDS, LARGE_BYTES = 4, 900_000
BURST_RECORDS, BURST_BYTES = 600, 10_000
"""More than a follower takes at once (replica.fetch.max.bytes, 1 MiB)."""
TINY_BYTES, SHORT_BYTES, HUGE_BYTES = 20_000, 100_000, 1_000_000_000

_PREFERRED = 0
_NEWEST, _CONSUMER = -1, -1
_THROTTLED = "follower.replication.throttled"


@dataclass(frozen=True)
class Roles:
    """Broker ids: `away` is stopped for a while, and so is not the active controller."""

    home: int
    other: int
    away: int

    @classmethod
    def of_cluster(cls, cluster: LocalCluster) -> Self:
        with cluster.admin() as admin:
            quorum = admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
        controller: int = quorum["leader_id"]
        return cls(controller, *(id_ for id_ in cluster.racks if id_ != controller))

    @property
    def topics(self) -> dict[str, dict[int, list[int]]]:
        """Topic -> partition -> replicas, the leader first."""
        home, other, away = self.home, self.other, self.away
        return {
            SPREAD: {0: [home, other, away], 1: [other, away, home], 2: [away, home, other]},
            LAGGING: {0: [home, away]},
            MOVED: {0: [home, other]},
            FULL: {0: [home], 1: [home]},
            LARGE: {0: [home]},
            LOG: {0: [home]},
        }


@dataclass(frozen=True)
class Scene:
    """Where it is played, and who has which part."""

    cluster: LocalCluster
    conf: Conf
    roles: Roles

    def rack(self, broker_id: int) -> str:
        return self.cluster.racks[broker_id]


def play(cluster: LocalCluster, conf: Conf) -> Scene:
    """Both acts; then what brokers logged is in LOG, and the cluster is as it was."""
    scene, acts = Scene(cluster, conf, Roles.of_cluster(cluster)), Acts(cluster, conf)
    with Readers.on_cluster(cluster) as readers:
        with acts.act():
            make_topics(scene)
            read_all(scene, readers)
        with recovered(scene), acts.act():
            throttle(scene, "1", f"0:{scene.roles.away}")
            move_leader(scene, readers)
            fall_behind(scene, readers)
    acts.ship(LOG, _is_ours)
    return scene


def make_topics(scene: Scene) -> None:
    """Topics with all that is read in the first act."""
    topics = scene.roles.topics
    with scene.cluster.admin() as admin:
        assigned = {name: {"assignments": replicas} for name, replicas in topics.items()}
        admin.create_topics(assigned, wait_for_metadata=True)
    for topic in (SPREAD, LAGGING, MOVED):
        for partition in topics[topic]:
            produce(scene, topic, partition, RECORDS, RECORD_BYTES)
    for partition in topics[FULL]:
        produce(scene, FULL, partition, FULL_RECORDS, RECORD_BYTES)
    produce(scene, LARGE, 0, LARGE_RECORDS, LARGE_BYTES)


def produce(
    scene: Scene, topic: str, partition: int, records: int, bytes_each: int, *, acks: int = -1
) -> None:
    """Records that all in-sync replicas have, or with 1 the leader."""
    settings = {"batch.size": BATCH_BYTES, "acks": acks}
    write(scene.cluster, PREFIX, topic, records, bytes_each, partition=partition, **settings)


def write(
    cluster: LocalCluster,
    prefix: str,
    topic: str,
    records: int,
    bytes_each: int,
    *,
    partition: int = 0,
    **settings: Any,
) -> None:
    """Records by a producer whose client id begins so, the same each time."""
    producer = quiet_clients.producer(cluster, "alice", client_id=f"{prefix}producer", **settings)
    record = Random(topic).randbytes(bytes_each)
    for _ in range(records):
        producer.produce(topic, record, partition=partition)
        producer.poll(0)
    assert producer.flush(30) == 0


def read_all(scene: Scene, readers: Readers) -> None:
    """Everybody reads all there is; the two that something happens to then stay."""
    home, away = scene.rack(scene.roles.home), scene.rack(scene.roles.away)
    readers.start(STICKY, LAGGING, 1, client_rack=away)
    readers.start(REDIRECTED, MOVED, 1, client_rack=home)
    racks = {f"{PREFIX}{rack}": rack for rack in scene.cluster.racks.values()}
    counts = dict.fromkeys((*racks, STRAY, NO_RACK), 3 * RECORDS)
    for client_id, rack in (racks | {STRAY: NOWHERE, NO_RACK: ""}).items():
        readers.start(client_id, SPREAD, 3, client_rack=rack)
    tiny = {"message_max_bytes": TINY_BYTES, "fetch_max_bytes": TINY_BYTES}
    huge = {"fetch_max_bytes": HUGE_BYTES, "max_partition_fetch_bytes": HUGE_BYTES}
    room = {"receive_message_max_bytes": HUGE_BYTES + 1_000}
    readers.start(TINY, FULL, 2, client_rack=home, **tiny)
    readers.start(HUGE, FULL, 2, client_rack=home, **huge, **room)
    readers.start(SHORT, LARGE, 1, client_rack=home, max_partition_fetch_bytes=SHORT_BYTES)
    counts |= {TINY: 2 * FULL_RECORDS, HUGE: 2 * FULL_RECORDS, SHORT: LARGE_RECORDS}
    for client_id, count in counts.items():
        readers.await_count(client_id, count)
    readers.stop(*counts)
    readers.await_count(STICKY, RECORDS)
    readers.await_count(REDIRECTED, RECORDS)


def move_leader(scene: Scene, readers: Readers) -> None:
    """Make the follower the leader, under its reader's eyes."""
    home, other = scene.roles.home, scene.roles.other
    with scene.cluster.admin() as admin:
        admin.alter_partition_reassignments({TopicPartition(MOVED, 0): [other, home]})
        admin.elect_leaders(_PREFERRED, {MOVED: [0]}, raise_errors=False)
    await_so(lambda: scene.cluster.partitions_at(scene.roles.away, MOVED)[0].leader == other)
    produce(scene, MOVED, 0, RECORDS, RECORD_BYTES)
    readers.await_count(REDIRECTED, 2 * RECORDS)


def fall_behind(scene: Scene, readers: Readers) -> None:
    """Stop a follower until it is out of sync; its throttle then holds it there.

    A broker shows a throttle before it obeys: the rate applies once it shows what was
    changed after it, as it takes changes in order. So its throttle is set before the leader moves.
    """
    with scene.cluster.admin() as admin:
        os.kill(scene.cluster.pids[scene.roles.away], signal.SIGSTOP)
        produce(scene, LAGGING, 0, BURST_RECORDS, BURST_BYTES, acks=1)
        home = scene.roles.home
        await_so(lambda: scene.cluster.partitions_at(home, LAGGING)[0].isrs == [home])
        await_so(lambda: high_watermark(scene, admin) == RECORDS + BURST_RECORDS)
        os.kill(scene.cluster.pids[scene.roles.away], signal.SIGCONT)
    readers.start(LATE, LAGGING, 1, client_rack=scene.rack(scene.roles.away))
    readers.await_count(LATE, RECORDS + BURST_RECORDS)
    readers.await_count(STICKY, RECORDS + 1)


def high_watermark(scene: Scene, admin: KafkaAdminClient) -> int:
    """Of LAGGING, by its leader: before it moves, a follower far behind can be in sync."""
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    partition = of_topic.ListOffsetsPartition(partition_index=0, timestamp=_NEWEST)
    request = ListOffsetsRequest(
        replica_id=_CONSUMER, topics=[of_topic(name=LAGGING, partitions=[partition])]
    )
    answer = admin._manager.run(admin._manager.send, request, scene.roles.home)
    return int(answer.topics[0].partitions[0].offset)


def throttle(scene: Scene, rate: str | None, replicas: str | None) -> None:
    """Throttle a follower of LAGGING, or with None no longer, and wait until its broker knows."""
    broker, topic = ConfigResourceType.BROKER, ConfigResourceType.TOPIC
    name, key = str(scene.roles.away), f"{_THROTTLED}.rate"
    calls = [
        traffic_configs.set_config(topic, LAGGING, f"{_THROTTLED}.replicas", replicas),
        traffic_configs.set_config(broker, name, key, rate),
    ]
    with scene.cluster.admin() as admin:
        assert [call(admin).error_code for call in calls] == [0, 0]
        read = partial(admin.describe_configs, [ConfigResource(broker, name)])
        await_so(lambda: read()["broker"][name].get(key, {}).get("value") == rate)


def is_there(scene: Scene) -> bool:
    """Whether the broker that stood still is registered again."""
    with scene.cluster.admin() as admin:
        brokers = admin.describe_cluster()["brokers"]
    return scene.roles.away in {broker["broker_id"] for broker in brokers}


@contextmanager
def recovered(scene: Scene) -> Iterator[None]:
    """Whatever happens in the block, then the broker goes on, unthrottled, with its leaders."""
    try:
        yield
    finally:
        os.kill(scene.cluster.pids[scene.roles.away], signal.SIGCONT)
        await_so(lambda: is_there(scene))
        throttle(scene, None, None)
        scene.cluster.start_broker(scene.roles.away)


def _is_ours(line: dict[str, Any]) -> bool:
    header = line["requestHeader"]
    client_id, api = header["clientId"] or "", header["requestApiKeyName"]
    is_follower = api == "FETCH" and client_id.startswith("broker-")
    return client_id.startswith(PREFIX) or is_follower or api == "ALTER_PARTITION"
