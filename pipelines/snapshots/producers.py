"""`active_producers` and `transactional_ids`, from leaders and transaction coordinators."""

from collections.abc import Iterator
from typing import Any

from quotaflow.pipelines.kafka.cluster_state import NO_LEADER, ClusterState, UnansweredError
from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.snapshots.topology import ObservedBrokers, Topology

# The last millisecond of the year 9999: a client may put any number into its batches.
_LAST_MS = 253_402_300_799_999


def active(state: ClusterState, topology: Topology) -> Iterator[Row | UnansweredPart]:
    """The producer ids that each leader knows in its partitions (KIP-664)."""
    yield from topology.unanswered
    for broker_id, partitions in sorted(topology.leaders.items()):
        if broker_id < 0:
            yield from (
                UnansweredPart(NO_LEADER, {"topic": t, "partition": p}) for t, p in partitions
            )
            continue
        for answer in state.producers(broker_id, partitions):
            topic, partition = answer.subject
            place = {"topic": topic, "partition": partition}
            if answer.reason is not None:
                yield UnansweredPart(answer.reason, place)
            for producer in answer.content:
                yield place | {"broker_id": broker_id} | _producer_row(producer)


def _producer_row(producer: Any) -> dict[str, Any]:
    time_ms = producer.last_timestamp
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "last_sequence": _or_null(producer.last_sequence),
        "last_timestamp": time_ms * 1_000 if 0 <= time_ms <= _LAST_MS else None,
        "coordinator_epoch": _or_null(producer.coordinator_epoch),
        "current_transaction_start_offset": _or_null(producer.current_txn_start_offset),
    }


def _or_null(number: int) -> int | None:
    """The number; Kafka has -1 for none."""
    return None if number < 0 else number


def transactional(state: ClusterState, brokers: ObservedBrokers) -> Iterator[Row | UnansweredPart]:
    """The transactional ids that each broker coordinates (KIP-664)."""
    yield from brokers.unanswered
    for broker_id in brokers.ids:
        try:
            transactions = state.transactions(broker_id)
        except UnansweredError as error:
            yield UnansweredPart(str(error), {"broker_id": broker_id})
            continue
        for each in transactions:
            yield {
                "transactional_id": each.transactional_id,
                "producer_id": each.producer_id,
                "broker_id": broker_id,
                "transaction_state": each.transaction_state,
            }
