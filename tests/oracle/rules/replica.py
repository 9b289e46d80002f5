"""Reference for `pipelines/results/shared/macros.sql`: the replica to read from (KIP-392).

What the leader's ReplicaManager.findPreferredReadReplica lets take part, and what Kafka's
RackAwareReplicaSelector picks from it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The one replica.selector.class that Kafka ships."""

NO_SELECTOR = "no_selector"
"""The broker has no replica.selector.class, the default: everybody reads from the leader."""
SELECTOR_UNKNOWN = "selector_unknown"
"""The broker's replica.selector.class is none of Kafka's: it may name any replica."""
NO_CLIENT_RACK = "no_client_rack"
"""The consumer declares no client.rack."""
LEADER_IN_RACK = "leader_in_rack"
FOLLOWER_IN_RACK = "follower_in_rack"
NO_REPLICA_IN_RACK = "no_replica_in_rack"
NOT_ELIGIBLE_IN_RACK = "not_eligible_in_rack"
"""Replicas in the rack are out of sync, offline, or do not hold the offset."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica as the partition's leader knows it.

    `caught_up_ms_ago`: since it last had all that the leader had. `is_online`: its broker is not
    fenced and has the listener the consumer came in on.
    """

    broker_id: int
    rack: str | None
    log_start_offset: int
    log_end_offset: int
    caught_up_ms_ago: int = 0
    is_in_sync: bool = True
    is_online: bool = True

    def is_eligible(self, fetch_offset: int) -> bool:
        """Whether the leader may name it, where it is a follower."""
        holds = self.log_start_offset <= fetch_offset <= self.log_end_offset
        return self.is_in_sync and self.is_online and holds


@dataclass(frozen=True, slots=True)
class Preferred:
    """The broker a consumer should read from, and why; None: not to be known from here."""

    broker_id: int | None
    reason: str


def preferred(
    selector: str | None,
    client_rack: str | None,
    leader: Replica,
    followers: Iterable[Replica],
    fetch_offset: int,
) -> Preferred:
    """The replica to read from at an offset; to Kafka an empty rack, or class, is none."""
    if not selector:
        return Preferred(leader.broker_id, NO_SELECTOR)
    if selector != RACK_AWARE:
        return Preferred(None, SELECTOR_UNKNOWN)
    if not client_rack:
        return Preferred(leader.broker_id, NO_CLIENT_RACK)
    if leader.is_online and leader.rack == client_rack:
        return Preferred(leader.broker_id, LEADER_IN_RACK)
    in_rack = [follower for follower in followers if follower.rack == client_rack]
    eligible = [follower for follower in in_rack if follower.is_eligible(fetch_offset)]
    if eligible:
        return Preferred(max(eligible, key=_most_caught_up).broker_id, FOLLOWER_IN_RACK)
    reason = NOT_ELIGIBLE_IN_RACK if in_rack else NO_REPLICA_IN_RACK
    return Preferred(leader.broker_id, reason)


def _most_caught_up(replica: Replica) -> tuple[int, int, int]:
    """Kafka's ReplicaView.comparator()."""
    return (replica.log_end_offset, -replica.caught_up_ms_ago, replica.broker_id)
