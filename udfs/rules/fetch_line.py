"""What a FETCH line of the request log shows of its fetch session (KIP-227), and does to it.

The rules are those of Kafka's FetchManager and FetchContext. A broker accepts one request per
epoch, so the partitions of a session follow from its first answer and every line since.
"""

from collections import Counter
from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from quotaflow.udfs.rules.fetch_session import (
    CachedPosition,
    FetchSession,
    Partition,
    PartitionLimits,
    RequestPartition,
    ResponsePartition,
)

SESSIONLESS = 0
"""The id of no session."""
FULL_EPOCHS = (-1, 0)
"""FINAL_EPOCH and INITIAL_EPOCH: the request names all its partitions, and ends its session."""
_ID_NOT_FOUND = 70


class SessionState(StrEnum):
    """What the log shows of the partitions that a request reads."""

    FULL = "full"
    INCREMENTAL = "known"
    UNKNOWN = "unknown"
    OUT_OF_ORDER = "out_of_order"
    REFUSED = "refused"


class FetchLine(NamedTuple):
    """What a line shows of the session that it begins, ends, or continues.

    `is_filled`: the records answered reach the limit of the whole response (KIP-74).
    """

    time_us: int
    session_id: int
    epoch: int
    response_session_id: int
    error_code: int
    is_filled: bool
    requested: Collection[RequestPartition]
    forgotten: Collection[Partition]
    answered: Collection[ResponsePartition]

    @property
    def is_full(self) -> bool:
        """Whether the request names all its partitions (KIP-227)."""
        return self.epoch in FULL_EPOCHS


class FollowedLine(NamedTuple):
    """A line, and the session after it: None where it ended, or began before the log did.

    `positions` belong to the answered partitions; None if only the line itself is known.
    `requested_count` is the number of partitions that the request reads, and `limits` their limits;
    None if unknown.
    `starved` are partitions that had more to read and got nothing from a response that was full.
    """

    session: FetchSession | None
    state: SessionState
    requested_count: int | None = None
    positions: list[CachedPosition] | None = None
    starved: Collection[Partition] = ()
    limits: PartitionLimits | None = None


def follow(
    session: FetchSession | None, session_id: int, line: FetchLine, idle_us: int
) -> FollowedLine:
    """Apply a line to the session of this id, which it names, begins, or ends.

    A session that was idle for longer than `idle_us` counts as ended.
    """
    if line.is_full:
        return _full(session, session_id, line)
    if session is None or line.time_us - session.last_us > idle_us:
        return FollowedLine(None, SessionState.REFUSED if line.error_code else SessionState.UNKNOWN)
    session.last_us = max(session.last_us, line.time_us)
    if line.error_code:
        # If the broker went to the next epoch before it refused, the next line shows that.
        is_removed = line.error_code == _ID_NOT_FOUND
        return FollowedLine(None if is_removed else session, SessionState.REFUSED)
    if not session.accept(line.epoch):
        return FollowedLine(session, SessionState.OUT_OF_ORDER)
    return _incremental(session, line)


def _full(session: FetchSession | None, session_id: int, line: FetchLine) -> FollowedLine:
    begins = line.response_session_id == session_id != SESSIONLESS
    starved: Collection[Partition] = ()
    if line.is_filled:
        offsets = {key: fetch_offset for key, fetch_offset, _ in line.requested}
        starved = [
            key
            for key, size_bytes, end, _ in line.answered
            if not size_bytes and end > offsets.get(key, end)
        ]
    if not begins:
        session = None
    elif session is None or session.began_us != line.time_us:  # else the first line comes twice
        session = FetchSession.begin(line.time_us, line.requested, line.answered)
    limits = PartitionLimits.from_counts(Counter(limit for *_, limit in line.requested))
    return FollowedLine(session, SessionState.FULL, len(line.requested), None, starved, limits)


def _incremental(session: FetchSession, line: FetchLine) -> FollowedLine:
    session.apply_request(line.requested, line.forgotten)
    requested_count, limits = len(session), session.limits()
    if line.response_session_id == SESSIONLESS:  # a broker ends a session that became empty
        if requested_count:
            return FollowedLine(None, SessionState.OUT_OF_ORDER)
        return FollowedLine(None, SessionState.INCREMENTAL, requested_count=0, limits=limits)
    positions = session.apply_response(line.answered)
    if positions is None:
        return FollowedLine(session, SessionState.OUT_OF_ORDER)
    starved: Collection[Partition] = ()
    if line.is_filled:
        served = {key for key, size_bytes, *_ in line.answered if size_bytes}
        starved = session.with_data_waiting(served)
    state = SessionState.INCREMENTAL
    return FollowedLine(session, state, requested_count, positions, starved, limits)
