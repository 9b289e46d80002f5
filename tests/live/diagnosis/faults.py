"""What goes wrong in an act, beside what its clients do: configs, leaders, followers, brokers."""

import os
import signal
import time

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResourceType

from quotaflow.demo.replica_moves import Throttled, move
from quotaflow.demo.traffic_configs import set_config

from .stage import ADMIN, Stage

_PREFERRED = 0
_PAUSE_S = 8.0
"""After 9 s (broker.session.timeout.ms) the controller fences the broker."""
_THROTTLE_S = 9.0
_LEADER_CHANGES = 10
MOVED = "move-under-a-throttle"


def alter_topic(admin: KafkaAdminClient, topic: str, key: str, value: str) -> None:
    """Set a config of a topic, which works."""
    answer = set_config(ConfigResourceType.TOPIC, topic, key, value)(admin)
    assert answer.error_code == 0, answer


def of_errors(stage: Stage) -> None:
    """Leaders that move to and fro."""
    partition = TopicPartition("leader-changes", 0)
    home, other = stage.roles.home, stage.roles.other
    with stage.cluster.admin() as admin:
        for n in range(_LEADER_CHANGES):
            order = [other, home] if n % 2 == 0 else [home, other]
            admin.alter_partition_reassignments({partition: order})
            time.sleep(0.4)
            admin.elect_leaders(_PREFERRED, raise_errors=False)
            time.sleep(0.8)


def of_followers(stage: Stage) -> None:
    """A throttle that names a follower in sync, and a move that it makes slow."""
    home, other = stage.roles.home, stage.roles.other
    with stage.cluster.admin(client_id=ADMIN) as admin:
        throttles = [Throttled(topic, home, other) for topic in ("throttled-in-sync", MOVED)]
        for throttled in throttles:
            throttled.set(admin, 1)
        move(admin, MOVED, [other], ask=home)
        time.sleep(_THROTTLE_S)
        for throttled in throttles:
            throttled.set(admin, None)


def of_a_pause(stage: Stage) -> None:
    """The process of a follower stops for seconds, as in a long garbage collection.

    Beside it a third replica of one topic is far behind.
    """
    home, other, away = stage.roles.home, stage.roles.other, stage.roles.away
    throttled = Throttled("paused-beside-a-move", home, away)
    with stage.cluster.admin(client_id=ADMIN) as admin:
        alter_topic(admin, "min-insync-replicas", "min.insync.replicas", "2")
        throttled.set(admin, 1)
        move(admin, throttled.topic, [home, other, away], ask=home)
        time.sleep(1)
        _pause(stage, other)
        throttled.set(admin, None)


def of_a_leader_pause(stage: Stage) -> None:
    """The process of a leader stops for seconds."""
    time.sleep(1)
    _pause(stage, stage.roles.away)


def _pause(stage: Stage, broker_id: int) -> None:
    pid = stage.cluster.pids[broker_id]
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(_PAUSE_S)
    finally:
        os.kill(pid, signal.SIGCONT)


def of_appends(stage: Stage) -> None:
    """A broker has to compress what comes uncompressed."""
    with stage.cluster.admin(client_id=ADMIN) as admin:
        alter_topic(admin, "recompression", "compression.type", "gzip")
