"""Fetch sessions (KIP-227) over a partition of FETCH lines sorted by session and time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from quotaflow.schemas.table import LONG, STRING, sql_columns
from quotaflow.schemas.tables import fetches, requests
from quotaflow.udfs.fetch_columns import (
    LineColumns,
    columns,
    cut,
    integers,
    lengths,
    names,
    offsets_of,
    partition_structs,
)
from quotaflow.udfs.key_runs import Key, key_at, key_runs
from quotaflow.udfs.rules.fetch_line import FULL_EPOCHS, FollowedLine, follow
from quotaflow.udfs.rules.fetch_session import CachedPartition, FetchSession

KEY = ("cluster_id", "broker_id", "session")
SESSION, FETCH, END = "session", "fetch", "end"
"""What a row is: a carried session, a line, or a repeated line that ended a session."""

_FILLED = {"session_state", "session_partitions", "response_bytes", "partitions", "starved"}
_FETCH = fetches.FETCHES.arrow
_OF_SESSION = [f for f in fetches.FETCH_SESSIONS.arrow if f.name not in _FETCH.names]
PASSED = [name for name in _FETCH.names if name not in _FILLED]
"""Columns of a line that pass through."""
ROWS = pa.schema(
    [
        *(_FETCH.field(name) for name in PASSED),
        pa.field("response_session_id", LONG),
        pa.field("forgotten", requests.REQUESTS.arrow.field("forgotten").type),
        pa.field("partitions", requests.REQUESTS.arrow.field("partitions").type),
        *_OF_SESSION,
        pa.field("session", LONG),
        pa.field("kind", STRING),
    ]
)
FOLLOWED = pa.schema([*_FETCH, *_OF_SESSION, pa.field("kind", STRING)])
FOLLOWED_SQL = sql_columns(FOLLOWED)

_Batches = Iterator[pa.RecordBatch]


def follow_sessions(idle_s: int) -> Callable[[_Batches], _Batches]:
    """A function for mapInArrow: ROWS in, sorted by KEY, the session's own row first, then by time.

    Returns FOLLOWED: lines with what follows from their sessions, and a row for each session that
    goes on. A line that names one session and begins another must come twice: the second time as
    END, under the key of the session it ends. All rows of a KEY must be in one partition; one
    session is in memory at a time.
    """
    if idle_s < 1:
        raise ValueError(f"idle_s must be at least 1, got {idle_s}")
    return partial(_follow, idle_s * 1_000_000)


def _follow(idle_us: int, batches: _Batches) -> _Batches:
    walk = _Walk(idle_us)
    for batch in batches:
        if batch.num_rows:
            yield from walk.follow(batch)
    walk.leave()
    yield from walk.sessions()


class _Left(NamedTuple):
    """A session whose lines were all read, and who fetched last."""

    key: Key
    session: FetchSession
    owner: Key


_OF_KEY = ("cluster_id", "broker_id", "session_id")
_OWNER = ("principal", "client_id", "replica_id")


@dataclass(slots=True)
class _Walk:
    """The session that is followed, and the finished ones that were not returned yet."""

    idle_us: int
    key: Key = ()
    session: FetchSession | None = None
    owner: Key = ()
    left: list[_Left] = field(default_factory=list)

    def follow(self, batch: pa.RecordBatch) -> _Batches:
        """The lines of a batch, then the sessions whose last line is in it."""
        lines, kinds = LineColumns(batch), batch.column("kind").to_pylist()
        numbered_lines = iter(lines)
        restored = _restored(batch) if SESSION in kinds else []
        chosen: list[int] = []
        followed: list[FollowedLine] = []
        for start, stop in key_runs(batch, KEY):
            key = key_at(batch, KEY, start)
            if key != self.key:
                self.leave()
                self.key = key
            session_id = int(str(key[-1]))
            for at, line in zip(range(start, stop), numbered_lines, strict=False):
                if kinds[at] == SESSION:
                    self.session = restored[at]
                    continue
                one = follow(self.session, session_id, line, self.idle_us)
                self.session = one.session
                if kinds[at] == FETCH:
                    chosen.append(at)
                    followed.append(one)
            self.owner = key_at(batch, _OWNER, stop - 1)
        if chosen:
            yield _fetches(batch, lines, chosen, followed)
        yield from self.sessions()

    def leave(self) -> None:
        """End the walk of the current session."""
        if self.session is not None:
            self.left.append(_Left(self.key, self.session, self.owner))
        self.session = None

    def sessions(self) -> _Batches:
        """A row for each session that was left."""
        if self.left:
            yield _sessions(self.left)
        self.left = []


def _restored(batch: pa.RecordBatch) -> list[FetchSession]:
    """The session of every row; that of a row of a line has no meaning."""
    lists = batch.column("cached_partitions")
    values = lists.flatten()
    numbers = ("fetch_offset", "partition_max_bytes", "end_offset")
    each = (integers(values.field(name), -1).tolist() for name in numbers)
    cached = cut(map(CachedPartition, names(values), *each), lengths(lists))
    return [
        FetchSession.restored(began_us, last_us, next_epoch, kept if is_known else None)
        for began_us, last_us, next_epoch, kept, is_known in zip(
            integers(batch.column("start_time"), 0).tolist(),
            integers(batch.column("event_time"), 0).tolist(),
            integers(batch.column("next_epoch"), 0).tolist(),
            cached,
            lists.is_valid().to_pylist(),
            strict=True,
        )
    ]


def _fetches(
    batch: pa.RecordBatch, lines: LineColumns, chosen: list[int], followed: list[FollowedLine]
) -> pa.RecordBatch:
    mine = batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen))
    given = {name: mine.column(name) for name in PASSED}
    named_id, answered_id, epoch = (
        integers(mine.column(name), null)
        for name, null in (("session_id", 0), ("response_session_id", 0), ("session_epoch", -1))
    )
    session_id = np.where(np.isin(epoch, FULL_EPOCHS), answered_id, named_id)
    given["session_id"] = pa.array(session_id, LONG)
    given |= columns(lines, chosen, followed)
    given["kind"] = pa.repeat(pa.scalar(FETCH, STRING), len(chosen))
    return _batch(given, len(chosen))


def _sessions(left: list[_Left]) -> pa.RecordBatch:
    sessions = [one.session for one in left]
    lists = {
        **dict(zip(_OF_KEY, zip(*(one.key for one in left), strict=True), strict=True)),
        **dict(zip(_OWNER, zip(*(one.owner for one in left), strict=True), strict=True)),
        "event_time": [one.last_us for one in sessions],
        "start_time": [one.began_us for one in sessions],
        "next_epoch": [one.next_epoch for one in sessions],
        "kind": [SESSION] * len(left),
    }
    given = {name: pa.array(values, FOLLOWED.field(name).type) for name, values in lists.items()}
    return _batch(given | {"cached_partitions": _cached_partitions(sessions)}, len(left))


def _cached_partitions(sessions: list[FetchSession]) -> pa.Array:
    cached = [one.cached_partitions() for one in sessions]
    kept = [one for each in cached for one in each]
    numbers = {
        "fetch_offset": [one.fetch_offset for one in kept],
        "partition_max_bytes": [one.max_bytes for one in kept],
        "end_offset": [one.end_offset for one in kept],
    }
    values = partition_structs([one.partition for one in kept], fetches.CACHED_PARTITION, numbers)
    is_lost = pa.array([not one.is_valid for one in sessions])
    return pa.ListArray.from_arrays(offsets_of([len(one) for one in cached]), values, mask=is_lost)


def _batch(given: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    arrays = [given[f.name] if f.name in given else pa.nulls(rows, f.type) for f in FOLLOWED]
    return pa.RecordBatch.from_arrays(arrays, schema=FOLLOWED)
