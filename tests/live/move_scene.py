"""Moves of replicas that end well, and not: what they leave behind, and who waits in vain.

Three acts: one move is done and its throttle stays, another waits for a broker that is down; a
minute later that one still does; and long after nothing moves.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kafka import KafkaAdminClient

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.replica_moves import Throttled, move, replicas
from quotaflow.pipelines.config import Conf

from .cluster_actions import Acts
from .rack_scene import Roles, write
from .readers import await_so

PREFIX = "moves-"
LEFT, DOWN, LOG = f"{PREFIX}left", f"{PREFIX}down", f"{PREFIX}log"
RATE = 5_000_000
"""Bytes per second: more than is there, so that the move does not feel it."""
RECORDS, RECORD_BYTES = 50, 1_000
MINUTES_LATER = 12
"""Longer than a throttle may lie about without a move (replication.stale_throttle_s)."""
SNAPSHOT_TABLES = ("settings", "configs", "client_quotas")
"""All that a snapshot must tell here: whose left-overs may be removed, and for a plan what is set.
The rest is in the log."""
ADMIN_APIS = frozenset({"INCREMENTAL_ALTER_CONFIGS", "ALTER_PARTITION_REASSIGNMENTS"})


@contextmanager
def played(cluster: LocalCluster, conf: Conf) -> Iterator[Roles]:
    """All acts; the brokers' log is in LOG, and the throttle stays until the block ends."""
    cluster.create_topics([LOG], 1, 1)
    roles = Roles.of_cluster(cluster)
    acts = Acts(cluster, conf, first_minutes_ago=MINUTES_LATER + 4)
    throttled = Throttled(LEFT, roles.home, roles.other)
    with cluster.admin() as admin, ExitStack() as after:
        after.callback(throttled.set, admin, None)
        with down(cluster, roles.away):
            with acts.act(sections=()):
                fill(cluster, admin, LEFT, roles.home)
                fill(cluster, admin, DOWN, roles.home)
                throttled.set(admin, RATE)
                move(admin, LEFT, [roles.other], ask=roles.home)
                await_so(lambda: replicas(admin, LEFT) == [roles.other])
                os.kill(cluster.pids[roles.away], signal.SIGSTOP)
                move(admin, DOWN, [roles.away], ask=roles.home)
            with acts.act(sections=()):
                write(cluster, PREFIX, LEFT, RECORDS, RECORD_BYTES)
        await_so(lambda: replicas(admin, DOWN) == [roles.away])
        with acts.act(MINUTES_LATER, SNAPSHOT_TABLES):
            write(cluster, PREFIX, LEFT, RECORDS, RECORD_BYTES)
        acts.ship(LOG, is_ours)
        yield roles


def fill(cluster: LocalCluster, admin: KafkaAdminClient, topic: str, leader: int) -> None:
    """A topic of one replica, with records."""
    admin.create_topics({topic: {"assignments": {0: [leader]}}}, wait_for_metadata=True)
    write(cluster, PREFIX, topic, RECORDS, RECORD_BYTES)


@contextmanager
def down(cluster: LocalCluster, broker_id: int) -> Iterator[None]:
    """Whatever stops the broker in the block, then it goes on."""
    try:
        yield
    finally:
        os.kill(cluster.pids[broker_id], signal.SIGCONT)
        cluster.start_broker(broker_id)


def is_ours(line: dict[str, Any]) -> bool:
    header = line["requestHeader"]
    client_id, api = header["clientId"] or "", header["requestApiKeyName"]
    is_follower = api == "FETCH" and client_id.startswith("broker-")
    is_admin = api in ADMIN_APIS or api == "ALTER_PARTITION"
    return client_id.startswith(PREFIX) or is_follower or is_admin
