"""KIP-392 played again: what a leader should have answered a fetch, by the rule.

A follower's fetch offset is its log end offset as the leader knows it. That is true from some
moment of the fetch on, so a follower is known within bounds, and a case within them is left open.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..oracle.rules.replica import Replica, preferred

SLACK_MS = 10
"""A line is written a moment after its answer was sent."""
FIRST_VERSION = 11
"""Older fetches carry no rack, and get no preferred replica."""

DIFFERS = "differs"
NAMES_NOBODY = "names_nobody"
"""A follower answered, or a fetch older than version 11 was: both are named no replica."""
REFUSED, TOPIC_UNKNOWN, OFFSET_UNKNOWN = "refused", "topic_unknown", "offset_unknown"
IN_SYNC_UNKNOWN = "in_sync_unknown"
"""The in-sync replicas changed at that moment, or later on, and what they were is in no line."""
MOMENT_UNKNOWN = "moment_unknown"
"""It depends on which came first, this fetch or a follower's."""

_BEFORE_ALL = -1
Key = tuple[str, int]
"""A partition: topic id and number."""


@dataclass(frozen=True)
class TimeRange:
    """When something happened: at two moments or between them, by one broker's clock, in ms."""

    began: float
    ended: float


@dataclass(frozen=True)
class Answer:
    """What a broker said of a partition to one fetch of a consumer; `named` -1 is nobody."""

    key: Key
    broker_id: int
    time_range: TimeRange
    rack: str | None = "az-b"
    api_version: int = FIRST_VERSION
    fetch_offset: int | None = 0
    named: int = -1
    error_code: int = 0


@dataclass(frozen=True)
class Position:
    """The position of a follower, as one of its fetches showed its leader."""

    time_range: TimeRange
    log_end_offset: int
    log_start_offset: int = 0


@dataclass(frozen=True)
class Partition:
    """A partition that nobody moved: `positions` are of followers, `changes` of who is in sync."""

    leader_id: int
    in_sync: frozenset[int]
    replicas: frozenset[int]
    positions: Mapping[int, list[Position]] = field(default_factory=dict)
    changes: list[tuple[TimeRange, frozenset[int]]] = field(default_factory=list)

    def in_sync_during(self, time_range: TimeRange) -> frozenset[int] | None:
        """The in-sync replicas all through a span; None where that is not known."""
        current = self.in_sync if not self.changes else None
        for change, in_sync in self.changes:
            if change.ended + SLACK_MS < time_range.began:
                current = in_sync
            elif change.began - SLACK_MS <= time_range.ended:
                return None
        return current

    def position(self, follower_id: int, time_range: TimeRange, is_late: bool) -> Position:
        """Where a follower was in a span, at most or at least.

        Before its first fetch the leader takes it to be before every offset.
        """
        reported = [
            position
            for position in self.positions.get(follower_id, ())
            if (
                position.time_range.began - SLACK_MS <= time_range.ended
                if is_late
                else position.time_range.ended + SLACK_MS < time_range.began
            )
        ]
        ends = [one.log_end_offset for one in reported]
        starts = [one.log_start_offset for one in reported]
        return Position(
            time_range, max(ends, default=_BEFORE_ALL), max(starts, default=_BEFORE_ALL)
        )


@dataclass(frozen=True)
class Cluster:
    """Racks and selectors by broker, and partitions."""

    racks: Mapping[int, str | None]
    selectors: Mapping[int, str | None]
    partitions: Mapping[Key, Partition]

    def replica(self, broker_id: int, at: Position, in_sync: frozenset[int]) -> Replica:
        """A replica at a position, on a broker that is up."""
        return Replica(
            broker_id,
            self.racks.get(broker_id),
            at.log_start_offset,
            at.log_end_offset,
            is_in_sync=broker_id in in_sync,
        )


def verdict(answer: Answer, cluster: Cluster) -> str:
    """The rule's reason where the broker answered as it says, else why there is nothing to compare.

    DIFFERS begins the text where they disagree.
    """
    partition = cluster.partitions.get(answer.key)
    if answer.error_code:
        return REFUSED
    if partition is None:
        return TOPIC_UNKNOWN
    if answer.broker_id != partition.leader_id or answer.api_version < FIRST_VERSION:
        return NAMES_NOBODY if answer.named < 0 else f"{DIFFERS}: {answer}"
    if answer.fetch_offset is None:
        return OFFSET_UNKNOWN
    in_sync = partition.in_sync_during(answer.time_range)
    if in_sync is None:
        return IN_SYNC_UNKNOWN
    return _compared(answer, cluster, in_sync)


def _compared(answer: Answer, cluster: Cluster, in_sync: frozenset[int]) -> str:
    partition = cluster.partitions[answer.key]
    leader = cluster.replica(partition.leader_id, Position(answer.time_range, 0), in_sync)
    selector = cluster.selectors.get(partition.leader_id)
    outcomes = {
        preferred(selector, answer.rack, leader, followers, answer.fetch_offset or 0)
        for followers in (
            [
                cluster.replica(id_, partition.position(id_, answer.time_range, is_late), in_sync)
                for id_ in partition.replicas - {partition.leader_id}
            ]
            for is_late in (False, True)
        )
    }
    first, *others = outcomes
    if others:
        return MOMENT_UNKNOWN
    named = answer.named if answer.named >= 0 else partition.leader_id
    return first.reason if first.broker_id == named else f"{DIFFERS}: {answer}, {first}"
