"""A broker's fetch sessions in plain Python, after Kafka's FetchManager, and what it would log.

Partitions are letters. Whatever was read is answered unless nothing of it changed.
"""

from dataclasses import dataclass, field

from quotaflow.udfs.rules.fetch_line import FetchLine
from quotaflow.udfs.rules.fetch_session import RequestPartition, ResponsePartition

SECOND_US = 1_000_000


@dataclass
class Read:
    """What a broker finds when it reads: bytes, end offset and error by partition.

    Those without an entry are read as they were last time, and bring nothing.
    """

    bytes: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    is_throttled: bool = False
    is_filled: bool = False
    has_room: bool = True


@dataclass
class Truth:
    """What the broker knew when it answered: order, offsets and limits, and who was starved."""

    state: str
    requested: list[tuple[str, int, int]]
    after: list[str]
    starved: list[str]


@dataclass
class Session:
    next_epoch: int
    order: list[str]
    requests: dict[str, tuple[int, int]]
    sent_ends: dict[str, int]


class Broker:
    """Answers fetches one after another, one a second."""

    def __init__(self, max_epoch: int) -> None:
        self.max_epoch = max_epoch
        self.sessions: dict[int, Session] = {}
        self.ends: dict[str, int] = {}
        self.newest_id = 100
        self.time_us = 0

    def fetch(
        self,
        session_id: int,
        epoch: int,
        requested: dict[str, tuple[int, int]],
        forgotten: list[str],
        read: Read,
    ) -> tuple[FetchLine, Truth]:
        """The line it logs, with partitions as `requests` lists them, and the truth behind it."""
        self.time_us += SECOND_US
        self.ends |= read.ends
        if epoch in (0, -1):
            answer = self._full(session_id, epoch, requested, read)
        else:
            answer = self._incremental(session_id, epoch, requested, forgotten, read)
        response_id, error, answered, truth = answer
        in_request = [key for key in requested if key in answered]
        others = [key for key in answered if key not in requested]
        line = FetchLine(
            self.time_us,
            session_id,
            epoch,
            response_id,
            error,
            read.is_filled and not read.is_throttled,
            [RequestPartition(key, *request) for key, request in requested.items()],
            forgotten,
            [answered[key] for key in in_request + others],
        )
        return line, truth

    def _full(self, session_id, epoch, requested, read):
        self.sessions.pop(session_id, None)
        truth = Truth("full", [(key, *requested[key]) for key in requested], [], [])
        if read.is_throttled:
            return 0, 0, {}, truth
        answered = self._read(list(requested), read)
        ends = {key: one.end_offset for key, one in answered.items()}
        truth.starved = self._starved(list(requested), requested, ends, read)
        if epoch == -1 or not read.has_room:
            return 0, 0, answered, truth
        self.newest_id += 1
        truth.after = list(answered)
        self.sessions[self.newest_id] = Session(1, list(answered), dict(requested), ends)
        return self.newest_id, 0, answered, truth

    def _incremental(self, session_id, epoch, requested, forgotten, read):
        session = self.sessions.get(session_id)
        if session is None or session.next_epoch != epoch:
            return 0, 70 if session is None else 71, {}, Truth("refused", [], [], [])
        for key, request in requested.items():
            if key not in session.order:
                session.order.append(key)
                session.sent_ends[key] = -1
            session.requests[key] = request
        session.order = [key for key in session.order if key not in forgotten]
        session.next_epoch = 1 if epoch == self.max_epoch else epoch + 1
        truth = Truth("known", [(key, *session.requests[key]) for key in session.order], [], [])
        if not session.order:
            del self.sessions[session_id]
            return 0, 0, {}, truth
        answered = {} if read.is_throttled else self._read(session.order, read)
        for key, one in list(answered.items()):
            if one.size_bytes or one.error_code or one.end_offset != session.sent_ends[key]:
                session.sent_ends[key] = one.end_offset
            else:
                del answered[key]
        moved = [key for key, one in answered.items() if one.size_bytes]
        session.order = [key for key in session.order if key not in moved] + moved
        truth.after = list(session.order)
        truth.starved = self._starved(session.order, session.requests, session.sent_ends, read)
        return session_id, 0, answered, truth

    def _read(self, order, read):
        """Answers in the order of reading, those that were refused before it last."""
        late = [key for key in order if read.errors.get(key) in (3, 29, 100)]
        first = [key for key in order if key not in late]
        return {key: self._answer(key, read) for key in first + late}

    def _answer(self, key, read):
        error = read.errors.get(key, 0)
        if error:
            return ResponsePartition(key, 0, -1, error)
        return ResponsePartition(key, read.bytes.get(key, 0), self.ends.get(key, 0), 0)

    def _starved(self, order, requests, ends, read):
        if read.is_throttled or not read.is_filled:
            return []
        served = {key for key, size in read.bytes.items() if size and key not in read.errors}
        return [key for key in order if key not in served and ends[key] > requests[key][0]]


def played(steps, max_epoch):
    """Lines of a client that does as its broker says, with the truth behind each."""
    broker, session_id, epoch = Broker(max_epoch), 0, 0
    for kind, requests, leaving, read in steps:
        if kind == "evicted":
            broker.sessions.pop(session_id, None)
        if kind == "wrong epoch" and session_id:
            yield broker.fetch(session_id, epoch + 2, requests, leaving, read)
        if kind == "first":  # another client's
            yield broker.fetch(0, 0, requests, [], read)
        full = not session_id or kind in {"begin", "end"}
        forgotten = [] if full else leaving
        if full:
            epoch = -1 if kind == "end" else 0
        line, truth = broker.fetch(session_id, epoch, requests, forgotten, read)
        yield line, truth
        session_id = 0 if line.error_code == 70 else line.response_session_id
        epoch = 1 if epoch == max_epoch or full else epoch + 1
