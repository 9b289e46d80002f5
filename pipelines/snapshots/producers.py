"""`active_producers` and `transactional_ids`: who writes, as leaders and coordinators know it."""

from collections.abc import Iterator
from typing import Any

from quotaflow.pipelines.kafka.cluster_state import NO_LEADER, ClusterState, UnansweredError
from quotaflow.pipelines.snapshots.observations import Gap, Row
from quotaflow.pipelines.snapshots.topology import Brokers, Topology

# The last millisecond of the year 9999: a client may put any number into its batches.
_LAST_MS = 253_402_300_799_999


def active(state: ClusterState, topology: Topology) -> Iterator[Row | Gap]:
    """Ask each leader which producer ids it knows in its partitions (KIP-664)."""
    yield from topology.unanswered
    for broker_id, partitions in sorted(topology.leaders.items()):
        if broker_id < 0:
            yield from (Gap(NO_LEADER, {"topic": t, "partition": p}) for t, p in partitions)
            continue
        for answer in state.producers(broker_id, partitions):
            topic, partition = answer.of
            of = {"topic": topic, "partition": partition}
            if answer.reason is not None:
                yield Gap(answer.reason, of)
            for producer in answer.found:
                yield of | {"broker_id": broker_id} | _told(producer)


def _told(producer: Any) -> dict[str, Any]:
    time_ms = producer.last_timestamp
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "last_sequence": _known(producer.last_sequence),
        "last_timestamp": time_ms * 1_000 if 0 <= time_ms <= _LAST_MS else None,
        "coordinator_epoch": _known(producer.coordinator_epoch),
        "current_transaction_start_offset": _known(producer.current_txn_start_offset),
    }


def _known(number: int) -> int | None:
    """Kafka says -1 for none."""
    return None if number < 0 else number


def transactional(state: ClusterState, brokers: Brokers) -> Iterator[Row | Gap]:
    """Ask each broker which transactional ids it coordinates (KIP-664)."""
    yield from brokers.unanswered
    for broker_id in brokers.ids:
        try:
            found = state.transactions(broker_id)
        except UnansweredError as error:
            yield Gap(str(error), {"broker_id": broker_id})
            continue
        for each in found:
            yield {
                "transactional_id": each.transactional_id,
                "producer_id": each.producer_id,
                "broker_id": broker_id,
                "transaction_state": each.transaction_state,
            }
