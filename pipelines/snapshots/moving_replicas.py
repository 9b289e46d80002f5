"""`moving_replicas`: what ongoing reassignments add and remove (KIP-455)."""

from collections.abc import Iterator

from quotaflow.pipelines.kafka.cluster_state import ClusterState, UnansweredError
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart


def observe(state: ClusterState) -> Iterator[Row | UnansweredPart]:
    """Every replica that a reassignment adds or removes now."""
    try:
        topics = state.reassignments()
    except UnansweredError as error:
        yield UnansweredPart(str(error))
        return
    for topic in topics:
        for partition in topic.partitions:
            named = {"topic": topic.name, "partition": partition.partition_index}
            for broker_id in partition.adding_replicas:
                yield named | {"broker_id": broker_id, "role": "adding"}
            for broker_id in partition.removing_replicas:
                yield named | {"broker_id": broker_id, "role": "removing"}
