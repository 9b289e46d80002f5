"""Reads the sizes and rates that decide the throttle of a move, before it starts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines.config import Conf, ReplicationSection
from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.kafka.reassignment_file import TargetReplicas
from quotaflow.pipelines.warehouse.reader import Reader, one_cluster
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.udfs.rules.move_throttle import (
    FOLLOWER,
    LEADER,
    SIDES,
    BrokerLoad,
    MoveThrottle,
    PartitionMove,
    move_throttle,
)

_RECENT, _CAPACITY_LOOKBACK = timedelta(minutes=10), timedelta(days=7)
_NEWEST = (
    "SELECT cluster_id, max(event_time) AS newest FROM replication_traffic GROUP BY cluster_id"
)
_REPLICAS = """
SELECT topic, partition, broker_id, is_leader FROM current_replicas
WHERE cluster_id = {cluster} AND topic IN ({topics})
ORDER BY topic, partition, is_preferred DESC, broker_id
"""
_SIZES = """
SELECT topic, partition, broker_id, size_bytes, is_removed, is_future FROM (
    SELECT *, row_number() OVER (
        PARTITION BY topic, partition, broker_id, log_dir ORDER BY event_time DESC
    ) AS age FROM replica_sizes WHERE cluster_id = {cluster} AND topic IN ({topics})
) AS seen WHERE age = 1 AND NOT is_removed AND NOT is_future
"""
# The busiest minute is the write rate: with a lower throttle the move would fall behind then.
_WRITTEN = """
SELECT topic, partition, max(bytes) / 60e0 AS written FROM (
    SELECT moved.topic, moved.partition, moved.event_time,
        sum(moved.bytes) AS bytes
    FROM replication_traffic AS moved
    WHERE moved.follower_id IS NULL AND moved.cluster_id = {cluster}
        AND moved.event_time > {recent}
    GROUP BY moved.topic, moved.partition, moved.event_time
) AS minutes WHERE topic IN ({topics}) GROUP BY topic, partition
"""
_READ = """
SELECT topic, partition, sum(bytes) / {recent_s} AS read FROM (
    SELECT choices.topic, choices.partition, choices.bytes
    FROM preferred_replicas AS choices
    WHERE choices.broker_id = choices.leader_id AND choices.cluster_id = {cluster}
        AND choices.event_time > {recent}
) AS reads WHERE topic IN ({topics}) GROUP BY topic, partition
"""
_CARRIED = f"""
WITH moved AS (
    SELECT event_time, broker_id AS node,
        CASE WHEN flow = 'produced' THEN '{FOLLOWER}' ELSE '{LEADER}' END AS side,
        bytes, bytes AS other
    FROM rack_traffic WHERE flow <> 'replicated' AND cluster_id = {{cluster}}
    UNION ALL
    SELECT event_time, leader_id AS node, '{LEADER}' AS side, bytes,
        bytes - coalesce(leader_throttled_bytes, 0) AS other
    FROM replication_traffic WHERE follower_id IS NOT NULL AND cluster_id = {{cluster}}
    UNION ALL
    SELECT event_time, follower_id AS node, '{FOLLOWER}' AS side, bytes,
        bytes - coalesce(follower_throttled_bytes, 0) AS other
    FROM replication_traffic WHERE follower_id IS NOT NULL AND cluster_id = {{cluster}}
), minutes AS (
    SELECT node, side, event_time, sum(bytes) AS bytes, sum(other) AS other
    FROM moved WHERE event_time > {{learned}}
    GROUP BY node, side, event_time
)
SELECT node, side, max(bytes) / 60e0 AS most,
    max(CASE WHEN event_time > {{recent}} THEN other ELSE 0 END) / 60e0 AS other
FROM minutes GROUP BY node, side
"""

_CORDONED = (
    "SELECT broker_id FROM cordoned_brokers WHERE cluster_id = {cluster} AND NOT takes_replicas"
)
_SIZING = (
    "SELECT response_max_bytes, least_leader_rate FROM throttle_sizing WHERE cluster_id = {cluster}"
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerSizing:
    """The sizing rule of KIP-73 (view throttle_sizing).

    Answers to followers of at most `response_max_bytes` are small enough for a throttle above
    `least_leader_rate`, in bytes/s; None: for none.
    """

    response_max_bytes: int
    least_leader_rate: float | None


@dataclass(frozen=True, slots=True)
class MoveAdvice:
    """The throttle of a move.

    `carried_at_most`: by broker and side, the most it carried in a minute of the last week, in
    bytes/s: its capacity is no less. `sizing`: how large answers to followers may be for a
    throttle; None where no table shows it. `cordoned`: brokers that get a replica, though all their
    log dirs are cordoned (KIP-1066).
    """

    throttle: MoveThrottle
    carried_at_most: Mapping[tuple[int, str], float]
    sizing: AnswerSizing | None = None
    cordoned: tuple[int, ...] = ()


def advise(reader: Reader, targets: Sequence[TargetReplicas], conf: Conf) -> MoveAdvice:
    """Advise a throttle for a reassignment. Raises ConfigError for unknown partitions."""
    cluster_id, newest = _newest(reader, conf.kafka.cluster_id)
    names = {
        "cluster": literal(cluster_id),
        "topics": ", ".join(sorted({literal(target.topic) for target in targets})),
        "recent": literal(newest - _RECENT),
        "recent_s": f"{_RECENT.total_seconds():.1f}e0",
        "learned": literal(newest - _CAPACITY_LOOKBACK),
    }
    questions = (_REPLICAS, _SIZES, _WRITTEN, _READ, _SIZING, _CORDONED)
    reader.gather_for(question.format(**names) for question in questions)
    partitions = _moving(reader, targets, names)
    carried = reader.rows(_CARRIED.format(**names))
    nodes = {node for move in partitions for node in (*move.replicas, *move.target)}
    brokers = _brokers(carried, nodes, conf.replication)
    throttle = move_throttle(partitions, brokers, conf.replication.rate_policy)
    most = {(row["node"], row["side"]): row["most"] for row in carried}
    sizing = [AnswerSizing(**row) for row in reader.rows(_SIZING.format(**names))]
    cordoned = _cordoned(reader, partitions, names)
    return MoveAdvice(throttle, most, next(iter(sizing), None), cordoned)


def _cordoned(
    reader: Reader, moves: Iterable[PartitionMove], names: dict[str, str]
) -> tuple[int, ...]:
    rows = reader.rows(_CORDONED.format(**names))
    added = {node for move in moves for node in set(move.target) - set(move.replicas)}
    return tuple(sorted(added & {row["broker_id"] for row in rows}))


def _newest(reader: Reader, pinned: str | None) -> tuple[str, datetime]:
    newest = {row["cluster_id"]: row["newest"] for row in reader.rows(_NEWEST)}
    cluster_id = one_cluster(newest, pinned)
    if cluster_id is None or cluster_id not in newest:
        cluster_text = f"of cluster {cluster_id} " if cluster_id else ""
        raise ConfigError(
            f"the tables have no traffic {cluster_text}yet: `quotaflow run --once` first"
        )
    return cluster_id, newest[cluster_id]


def _moving(
    reader: Reader, targets: Sequence[TargetReplicas], names: dict[str, str]
) -> list[PartitionMove]:
    replicas, leaders = defaultdict[tuple[str, int], list[int]](list), dict[tuple[str, int], int]()
    for row in reader.rows(_REPLICAS.format(**names)):
        key = row["topic"], row["partition"]
        replicas[key].append(row["broker_id"])
        if row["is_leader"]:
            leaders[key] = row["broker_id"]
    sizes = {
        (row["topic"], row["partition"], row["broker_id"]): row["size_bytes"]
        for row in reader.rows(_SIZES.format(**names))
    }
    written = _by_partition(reader.rows(_WRITTEN.format(**names)), "written")
    read = _by_partition(reader.rows(_READ.format(**names)), "read")
    moves = []
    for target in targets:
        key = target.topic, target.partition
        leader = leaders.get(key)
        if leader is None:
            raise ConfigError(_unknown(key, bool(replicas[key])))
        if (*key, leader) not in sizes:
            raise ConfigError(
                f"the size of {key[0]}-{key[1]} at its leader {leader} is in no snapshot: "
                "`quotaflow snapshot` reads log dirs where it may"
            )
        size, now = sizes[*key, leader], tuple(replicas[key])
        rates = written.get(key, 0.0), read.get(key, 0.0)
        moves.append(PartitionMove(*key, leader, now, tuple(target.replicas), size, *rates))
    return moves


def _unknown(key: tuple[str, int], has_replicas: bool) -> str:
    name = f"{key[0]}-{key[1]}"
    if has_replicas:
        return f"{name} had no leader when the last snapshot was taken: it cannot be moved"
    return f"{name} is in no snapshot: does it exist? `quotaflow snapshot` reads the topics again"


def _by_partition(rows: Iterable[Row], name: str) -> dict[tuple[str, int], float]:
    return {(row["topic"], row["partition"]): row[name] for row in rows}


def _brokers(
    rows: Iterable[Row], nodes: Iterable[int], conf: ReplicationSection
) -> dict[int, BrokerLoad]:
    other = defaultdict[int, dict[str, float]](dict)
    for row in rows:
        other[row["node"]][row["side"]] = row["other"]
    return {
        node: BrokerLoad(dict.fromkeys(SIDES, conf.capacity(node)), other[node]) for node in nodes
    }
