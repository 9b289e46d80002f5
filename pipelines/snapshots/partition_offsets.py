"""`partition_offsets`: where partitions start and end, from their leaders (ListOffsets)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from typing import Any

from quotaflow.pipelines.kafka import offsets
from quotaflow.pipelines.kafka.cluster_state import NO_LEADER, ClusterState, Partition
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.snapshots.topology import Topology

_NEEDED = {"log_start_offset": offsets.log_starts, "log_end_offset": offsets.log_ends}
# Brokers before Kafka 3.9 do not answer them all, and the rest of a row is right without them.
_OPTIONAL = {
    "last_stable_offset": offsets.last_stable,
    "local_log_start_offset": offsets.local_log_starts,
    "last_tiered_offset": offsets.last_tiered,
}


REMOTE_STORAGE = "remote.storage.enable"


def tiered(topic_configs: Iterable[Row | UnansweredPart], topology: Topology) -> set[Partition]:
    """The partitions of topics with remote storage (KIP-405)."""
    topics = {
        row["entity_name"]
        for row in topic_configs
        if not isinstance(row, UnansweredPart)
        and row["config_key"] == REMOTE_STORAGE
        and row["config_value"] == "true"
    }
    return {each for led in topology.leaders.values() for each in led if each[0] in topics}


def observe(
    state: ClusterState, topology: Topology, partitions: Set[Partition]
) -> Iterator[Row | UnansweredPart]:
    """Offsets of these partitions. A partition without a leader, or refused, is unanswered."""
    yield from topology.unanswered
    for leader_id, led in sorted(topology.leaders.items()):
        of_leader = [partition for partition in led if partition in partitions]
        if leader_id < 0:
            yield from (UnansweredPart(NO_LEADER, _place(partition)) for partition in of_leader)
        elif of_leader:
            yield from _of_leader(state, leader_id, of_leader)


def _of_leader(
    state: ClusterState, leader_id: int, partitions: list[Partition]
) -> Iterator[Row | UnansweredPart]:
    rows: dict[Partition, dict[str, Any]] = defaultdict(dict)
    refused: dict[Partition, str] = {}
    for column, ask in (_NEEDED | _OPTIONAL).items():
        for answer in ask(state, leader_id, partitions):
            if answer.reason is None:
                # Kafka has -1 for none.
                rows[answer.subject][column] = None if answer.content < 0 else answer.content
            elif column in _NEEDED:
                refused[answer.subject] = answer.reason
    for partition in partitions:
        if partition in refused:
            yield UnansweredPart(refused[partition], _place(partition))
        else:
            yield _place(partition) | dict.fromkeys(_OPTIONAL) | rows[partition]


def _place(partition: Partition) -> dict[str, Any]:
    topic, index = partition
    return {"topic": topic, "partition": index}
