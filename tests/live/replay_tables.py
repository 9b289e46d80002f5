"""Reads from a warehouse what a replay of KIP-392 needs, up to the first snapshot.

The snapshot has leaders and replicas, so nobody may move them before it.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from .replay import Answer, Cluster, Key, Partition, Position, TimeRange
from .tables_read import query

_FIRST = "(SELECT min(event_time) FROM replicas)"
_BEFORE = f"event_time < {_FIRST}"
_OF_PARTITION = (
    "p['topic_id'] AS topic_id, p['partition'] AS n, p['fetch_offset'] AS fetch_offset, "
    "coalesce(p['error_code'], 0) AS error_code"
)
_TIMES = "epoch_us(event_time) / 1e3 AS ended, epoch_us(event_time) / 1e3 - total_time_ms"


def answers(folder: Path) -> list[tuple[str, Answer]]:
    """Client id and answer, of every fetch of a consumer that declared its rack."""
    topics = query(folder, f"SELECT topic, topic_id FROM topics WHERE event_time = {_FIRST}")
    ids = {row["topic"]: row["topic_id"] for row in topics}
    rows = query(
        folder,
        f"SELECT client_id, broker_id, {_TIMES} AS began, rack_id, api_version, {_OF_PARTITION}, "
        "p['topic'] AS topic, coalesce(p['preferred_read_replica'], -1) AS named FROM "
        "(SELECT *, unnest(partitions) AS p FROM fetches "
        f"WHERE replica_id IS NULL AND rack_id IS NOT NULL AND {_BEFORE})",
    )
    return [
        (
            row["client_id"],
            Answer(
                key=(row["topic_id"] or ids[row["topic"]], row["n"]),
                broker_id=row["broker_id"],
                time_range=TimeRange(row["began"], row["ended"]),
                rack=row["rack_id"],
                api_version=row["api_version"],
                fetch_offset=row["fetch_offset"],
                named=row["named"],
                error_code=row["error_code"],
            ),
        )
        for row in rows
    ]


def cluster(folder: Path) -> Cluster:
    """The state by the first snapshot and the lines before it."""
    racks = query(folder, "SELECT broker_id, rack FROM current_brokers")
    selectors = query(
        folder,
        "SELECT entity_name, config_value FROM current_configs "
        "WHERE entity_type = 'broker' AND config_key = 'replica.selector.class'",
    )
    replicas = defaultdict[Key, list[Any]](list)
    for row in query(folder, f"SELECT * FROM replicas WHERE event_time = {_FIRST}"):
        replicas[row["topic_id"], row["partition"]].append(row)
    positions, changes = _positions(folder), _changes(folder)
    return Cluster(
        racks={row["broker_id"]: row["rack"] for row in racks},
        selectors={int(row["entity_name"]): row["config_value"] for row in selectors},
        partitions={
            key: Partition(
                leader_id=next((row["broker_id"] for row in rows if row["is_leader"]), -1),
                in_sync=frozenset(row["broker_id"] for row in rows if row["is_in_sync"]),
                replicas=frozenset(row["broker_id"] for row in rows),
                positions=positions.get(key, {}),
                changes=changes.get(key, []),
            )
            for key, rows in replicas.items()
        },
    )


def _positions(folder: Path) -> dict[Key, dict[int, list[Position]]]:
    """Requests of followers name a partition whenever they come from another offset."""
    rows = query(
        folder,
        f"SELECT replica_id, {_TIMES} AS began, request_queue_time_ms + local_time_ms AS worked, "
        f"{_OF_PARTITION}, p['follower_log_start_offset'] AS log_start FROM "
        "(SELECT *, unnest(partitions) AS p FROM requests "
        "WHERE api = 'FETCH' AND replica_id IS NOT NULL AND coalesce(error_code, 0) = 0) "
        "WHERE p['in_request'] ORDER BY event_time",
    )
    positions = defaultdict[Key, dict[int, list[Position]]](dict)
    for row in rows:
        if not row["error_code"]:
            time_range = TimeRange(row["began"], row["began"] + row["worked"])
            at = Position(time_range, row["fetch_offset"], row["log_start"])
            positions[row["topic_id"], row["n"]].setdefault(row["replica_id"], []).append(at)
    return positions


def _changes(folder: Path) -> dict[Key, list[tuple[TimeRange, frozenset[int]]]]:
    """In-sync replicas as controllers granted them to leaders, in order of time."""
    rows = query(
        folder,
        f"SELECT {_TIMES} AS began, body FROM requests "
        f"WHERE api = 'ALTER_PARTITION' AND coalesce(error_code, 0) = 0 AND {_BEFORE} "
        "ORDER BY event_time",
    )
    changes = defaultdict[Key, list[tuple[TimeRange, frozenset[int]]]](list)
    for row in rows:
        for topic in json.loads(row["body"])["response"]["topics"]:
            for partition in topic["partitions"]:
                if not partition["errorCode"]:
                    change = TimeRange(row["began"], row["ended"]), frozenset(partition["isr"])
                    changes[topic["topicId"], partition["partitionIndex"]].append(change)
    return changes
