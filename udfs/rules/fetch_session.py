"""A fetch session (KIP-227) as its broker keeps it: partitions in the order they are read.

The rules are those of Kafka's FetchSession and FetchContext.
"""

from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple, Self

MAX_EPOCH = 2**31 - 1
MAX_LIMIT = 2**31 - 1
"""The greatest limit in bytes that a request can have: a signed integer of 32 bits."""

# Found before anything is read, and placed after partitions that were: TOPIC_AUTHORIZATION_FAILED,
# UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID.
_ANSWERED_LAST = frozenset({3, 29, 100})


Partition = Hashable
"""Any key of a partition."""


class RequestPartition(NamedTuple):
    """A partition as a request names it."""

    partition: Partition
    fetch_offset: int
    max_bytes: int


class ResponsePartition(NamedTuple):
    """A partition as a response names it: bytes of records, and the end of what could be read.

    The end is the high watermark, or the last stable offset under read_committed; -1 with an error.
    """

    partition: Partition
    size_bytes: int
    end_offset: int
    error_code: int


CachedPosition = tuple[int, int, int]
"""A partition of a session at a request: its 0-based place, fetch offset, and limit in bytes."""


class CachedPartition(NamedTuple):
    """A partition of a session as it is stored."""

    partition: Partition
    fetch_offset: int
    max_bytes: int
    end_offset: int


class PartitionLimits(NamedTuple):
    """The limits of the partitions that a request reads (KIP-74), in bytes: their sum and greatest.

    Without any partition both are 0.
    """

    sum_bytes: int
    greatest_bytes: int

    @classmethod
    def from_counts(cls, counts: Mapping[int, int]) -> Self | None:
        """Of how many partitions have each limit; None if one of them has none that Kafka has."""
        if any(not 0 <= limit <= MAX_LIMIT for limit in counts):
            return None
        total = sum(limit * partitions for limit, partitions in counts.items())
        return cls(total, max(counts, default=0))


class FetchSession:
    """One session: its partitions in the order a broker reads them, and the epoch that is next.

    After a missed epoch nothing more is known: `is_valid` is false for the rest of its life. The
    cost of a line grows with the partitions that it names, not with those of the session: places
    are found by bisection in the ascending tickets of the partitions, and a partition that moves
    to the end takes a new ticket.
    """

    __slots__ = (
        "_limits",
        "_partitions",
        "_tickets",
        "began_us",
        "is_valid",
        "last_us",
        "next_epoch",
    )

    def __init__(self, began_us: int, last_us: int, next_epoch: int, *, is_known: bool) -> None:
        """Begin without partitions."""
        self.began_us = began_us
        self.last_us = last_us
        self.next_epoch = next_epoch
        self.is_valid = is_known
        # Ticket, fetch offset, limit in bytes and end offset.
        self._partitions: dict[Partition, list[int]] = {}
        self._tickets: list[int] = []
        # How many partitions have each limit: a client mostly gives all of them the same.
        self._limits: dict[int, int] = {}

    @classmethod
    def begin(
        cls,
        time_us: int,
        requested: Iterable[RequestPartition],
        answered: Iterable[ResponsePartition],
    ) -> Self:
        """The session that the answer to a full request begins: its partitions, in their order."""
        session = cls(time_us, time_us, next_epoch=1, is_known=True)
        requests = {key: (fetch_offset, max_bytes) for key, fetch_offset, max_bytes in requested}
        answers = {key: (end, error) for key, _, end, error in answered}
        if not answers.keys() <= requests.keys():
            session.invalidate()
            return session
        for key in sorted(answers, key=lambda key: answers[key][1] in _ANSWERED_LAST):
            session._add(key, *requests[key], answers[key][0])
        return session

    @classmethod
    def restored(
        cls, began_us: int, last_us: int, next_epoch: int, cached: Iterable[CachedPartition] | None
    ) -> Self:
        """A session as it was stored; `cached` is None if an epoch was missed."""
        session = cls(began_us, last_us, next_epoch, is_known=cached is not None)
        for one in cached or ():
            session._add(*one)
        return session

    def __len__(self) -> int:
        """How many partitions it holds."""
        return len(self._partitions)

    def limits(self) -> PartitionLimits | None:
        """The limits of its partitions together; None if one of them is not known."""
        return PartitionLimits.from_counts(self._limits)

    def cached_partitions(self) -> list[CachedPartition]:
        """Its partitions in order, to be stored."""
        return [CachedPartition(key, one[1], one[2], one[3]) for key, one in self._in_order()]

    def invalidate(self) -> None:
        """Drop all partitions, because the effect of the next lines is unknown."""
        self.is_valid = False
        self._partitions = {}
        self._tickets = []
        self._limits = {}

    def accept(self, epoch: int) -> bool:
        """Whether a request that the broker accepted is the next one; if so, go to its epoch.

        An earlier epoch is a repeated or late line and changes nothing. A later epoch means that
        lines are missing, and invalidates the session.
        """
        if not self.is_valid:
            return False
        if epoch != self.next_epoch:
            if epoch > self.next_epoch:
                self.invalidate()
            return False
        self.next_epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        return True

    def apply_request(
        self, requested: Iterable[RequestPartition], forgotten: Iterable[Partition]
    ) -> None:
        """Apply a request: change or append named partitions, then drop the forgotten.

        A known end offset is kept.
        """
        partitions = self._partitions
        for key, fetch_offset, max_bytes in requested:
            one = partitions.get(key)
            if one is None:
                self._add(key, fetch_offset, max_bytes, -1)
            else:
                one[1] = fetch_offset
                if one[2] != max_bytes:
                    self._count(one[2], -1)
                    self._count(max_bytes, 1)
                    one[2] = max_bytes
        for key in forgotten:
            one = partitions.pop(key, None)
            if one is not None:
                del self._tickets[bisect_left(self._tickets, one[0])]
                self._count(one[2], -1)

    def apply_response(self, answered: Iterable[ResponsePartition]) -> list[CachedPosition] | None:
        """Apply a response: partitions with records move to the end. Returns each position before.

        None if the response names a partition that the session does not have: lines are missing.
        """
        partitions, tickets = self._partitions, self._tickets
        positions: list[CachedPosition] = []
        moved: dict[int, list[int]] = {}
        for key, size_bytes, end_offset, _ in answered:
            one = partitions.get(key)
            if one is None:
                self.invalidate()
                return None
            place = bisect_left(tickets, one[0])
            positions.append((place, one[1], one[2]))
            one[3] = end_offset
            if size_bytes > 0:
                moved[place] = one
        # A broker answers in the order it read; a log lists named partitions first.
        for moved_before, place in enumerate(sorted(moved)):
            ticket = tickets[-1] + 1
            del tickets[place - moved_before]
            tickets.append(ticket)
            moved[place][0] = ticket
        return positions

    def with_data_waiting(self, served: Collection[Partition]) -> list[Partition]:
        """Partitions known to have more to read, in order, except those that were served."""
        return [
            key
            for key, (_, fetch_offset, _, end_offset) in self._in_order()
            if end_offset > fetch_offset and key not in served
        ]

    def _in_order(self) -> list[tuple[Partition, list[int]]]:
        return sorted(self._partitions.items(), key=itemgetter(1))

    def _add(self, key: Partition, fetch_offset: int, max_bytes: int, end_offset: int) -> None:
        ticket = self._tickets[-1] + 1 if self._tickets else 0
        self._partitions[key] = [ticket, fetch_offset, max_bytes, end_offset]
        self._tickets.append(ticket)
        self._count(max_bytes, 1)

    def _count(self, limit: int, change: int) -> None:
        partitions = self._limits.get(limit, 0) + change
        if partitions:
            self._limits[limit] = partitions
        else:
            del self._limits[limit]
