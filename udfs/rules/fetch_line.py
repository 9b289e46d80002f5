"""What a FETCH line of the request log says of its session (KIP-227), and does to it.

The rules are those of Kafka's FetchManager and FetchContext. A broker accepts one request per
epoch, so what a session holds follows from its first answer and every line since.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from quotaflow.udfs.rules.fetch_session import Answered, Asked, FetchSession, Held, Partition

SESSIONLESS = 0
"""The id of no session."""
FULL_EPOCHS = (-1, 0)
"""FINAL_EPOCH and INITIAL_EPOCH: the request names all it wants, and ends the session it names."""
_ID_NOT_FOUND = 70


class SessionState(StrEnum):
    """What the log tells of the partitions a request asked for."""

    FULL = "full"
    KNOWN = "known"
    UNKNOWN = "unknown"
    OUT_OF_ORDER = "out_of_order"
    REFUSED = "refused"


class Line(NamedTuple):
    """What a line says of the session it begins, ends or goes on with.

    `is_filled`: the records answered reach the limit of the whole response (KIP-74).
    """

    time_us: int
    session_id: int
    epoch: int
    response_session_id: int
    error_code: int
    is_filled: bool
    asked: Collection[Asked]
    forgotten: Collection[Partition]
    answered: Collection[Answered]

    @property
    def is_full(self) -> bool:
        """Whether the request names all it wants (KIP-227)."""
        return self.epoch in FULL_EPOCHS


class Followed(NamedTuple):
    """A line, and the session after it: None where it ended, or began before the log did.

    `held` goes with `answered`; it is None where the line itself is all that is known.
    `asked_count` is None where it is not known for how many partitions was asked. `starved` are
    those that had more to read, and of which a response that was full brought nothing.
    """

    session: FetchSession | None
    state: SessionState
    asked_count: int | None = None
    held: list[Held] | None = None
    starved: Collection[Partition] = ()


def follow(session: FetchSession | None, session_id: int, line: Line, idle_us: int) -> Followed:
    """What a line does to the session of this id, one that it names, begins or ends.

    A session that nobody used for longer than `idle_us` counts as gone.
    """
    if line.is_full:
        return _full(session, session_id, line)
    if session is None or line.time_us - session.last_us > idle_us:
        return Followed(None, SessionState.REFUSED if line.error_code else SessionState.UNKNOWN)
    session.last_us = max(session.last_us, line.time_us)
    if line.error_code:
        # Had the broker gone to the next epoch before it refused, the next line will tell.
        gone = line.error_code == _ID_NOT_FOUND
        return Followed(None if gone else session, SessionState.REFUSED)
    if not session.accept(line.epoch):
        return Followed(session, SessionState.OUT_OF_ORDER)
    return _known(session, line)


def _full(session: FetchSession | None, session_id: int, line: Line) -> Followed:
    begins = line.response_session_id == session_id != SESSIONLESS
    starved: Collection[Partition] = ()
    if line.is_filled:
        offsets = {key: fetch_offset for key, fetch_offset, _ in line.asked}
        starved = [
            key
            for key, size_bytes, end, _ in line.answered
            if not size_bytes and end > offsets.get(key, end)
        ]
    if not begins:
        session = None
    elif session is None or session.began_us != line.time_us:  # else the beginning is told twice
        session = FetchSession.begin(line.time_us, line.asked, line.answered)
    return Followed(session, SessionState.FULL, len(line.asked), None, starved)


def _known(session: FetchSession, line: Line) -> Followed:
    session.ask(line.asked, line.forgotten)
    asked_count = len(session)
    if line.response_session_id == SESSIONLESS:  # a broker ends a session that became empty
        state = SessionState.OUT_OF_ORDER if asked_count else SessionState.KNOWN
        return Followed(None, state, None if asked_count else 0)
    held = session.answer(line.answered)
    if held is None:
        return Followed(session, SessionState.OUT_OF_ORDER)
    starved: Collection[Partition] = ()
    if line.is_filled:
        served = {key for key, size_bytes, *_ in line.answered if size_bytes}
        starved = session.waiting(served)
    return Followed(session, SessionState.KNOWN, asked_count, held, starved)
