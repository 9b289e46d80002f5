"""`replica_sizes`: size on disk and log dir of each replica (DescribeLogDirs, KIP-113)."""

from collections.abc import Iterator

from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.snapshots.topology import ObservedBrokers


def observe(state: ClusterState, brokers: ObservedBrokers) -> Iterator[Row | UnansweredPart]:
    """The replicas in the log dirs of every broker."""
    yield from brokers.unanswered
    for broker_id in brokers.ids:
        try:
            yield from _of_broker(state, broker_id)
        except UnansweredError as error:
            yield UnansweredPart(str(error), {"broker_id": broker_id})


def _of_broker(state: ClusterState, broker_id: int) -> Iterator[Row | UnansweredPart]:
    for answer in state.log_dirs(broker_id):
        place = {"broker_id": broker_id, "log_dir": answer.subject}
        if answer.reason is not None:
            # A refusal names no log dir; a broken log dir has its name.
            yield UnansweredPart(
                answer.reason, place if answer.subject else {"broker_id": broker_id}
            )
        for topic in answer.content:
            for partition in topic.partitions:
                yield place | {
                    "topic": topic.name,
                    "partition": partition.partition_index,
                    "size_bytes": partition.partition_size,
                    "offset_lag": partition.offset_lag,
                    "is_future": partition.is_future_key,
                }
