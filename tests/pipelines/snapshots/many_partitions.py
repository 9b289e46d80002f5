"""Asks a made cluster of 30,000 partitions for everything, and prints what that took, as JSON.

A process of its own, for its memory is what is measured:
`python -m tests.pipelines.snapshots.many_partitions`.
"""

import json
import resource
import time
from typing import Any

from quotaflow.pipelines.kafka.cluster_state import ClusterState
from quotaflow.pipelines.snapshots import sections
from quotaflow.pipelines.snapshots.sections import ClusterObserver

from ..kafka import fake_cluster

TOPICS, PARTITIONS = 10_000, 3
CONFIGS = [(f"config.{n}", str(n), fake_cluster.BY_DEFAULT) for n in range(34)]
OF_TOPIC = [*CONFIGS, ("retention.ms", "1", fake_cluster.ON_TOPIC)]
STATE = {
    "producer_epoch": 0,
    "last_sequence": 1,
    "last_timestamp": 1_700_000_000_000,
    "coordinator_epoch": -1,
    "current_txn_start_offset": -1,
}


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


def made() -> fake_cluster.MadeCluster:
    topics = {f"topic-of-some-length-{n:05}": PARTITIONS for n in range(TOPICS)}
    states = [STATE | {"producer_id": n} for n in range(2)]
    return fake_cluster.MadeCluster(
        topics=topics,
        configs={(fake_cluster.TOPIC, name): OF_TOPIC for name in topics},
        producers={(name, n): states for name in topics for n in range(PARTITIONS)},
    )


def by_wire(answer: fake_cluster.MadeCluster) -> Any:
    """Answers as they come from a socket, so that reading them is measured too."""

    def send(request: Any, broker_id: int | None) -> Any:
        response = answer(request, broker_id)
        # Answers about groups were decoded before: only one that was not has a header to set.
        if not hasattr(response, "_header"):
            return response
        version = response.version or type(response).max_version
        return type(response).decode(bytes(response.encode(version=version)), version=version)

    return send


def main() -> None:
    cluster = made()
    observer = ClusterObserver(ClusterState(by_wire(cluster)), set)
    before, began = peak_mib(), time.process_time()
    rows = {}
    for table in sections.SNAPSHOT_TABLES:
        rows[table.name] = observer.observed(table).rows.num_rows
    spent = time.process_time() - began
    print(json.dumps({"rows": rows, "grown_mib": peak_mib() - before, "cpu_s": spent}))  # noqa: T201


if __name__ == "__main__":
    main()
