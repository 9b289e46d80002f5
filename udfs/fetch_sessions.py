"""Fetch sessions (KIP-227) over a partition of FETCH lines sorted by session and time."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import BOOLEAN, LONG, STRING, TIMESTAMP, sql_columns
from quotaflow.schemas.tables.declared import FETCH_SESSIONS, FETCHES
from quotaflow.udfs import fetch_lines, table_files
from quotaflow.udfs.engine.database import DEFAULT_MEMORY_MB, opened
from quotaflow.udfs.engine.rule import Files
from quotaflow.udfs.engine.task import cores
from quotaflow.udfs.fetch_columns import FollowedColumns, LineColumns, integers, offsets_of
from quotaflow.udfs.fetch_lines import FETCH, KEY, OF_SESSION, PASSED, ROWS, SESSION
from quotaflow.udfs.key_runs import key_runs
from quotaflow.udfs.rules.fetch_line import FULL_EPOCHS, FollowedLine, follow
from quotaflow.udfs.rules.fetch_session import FetchSession
from quotaflow.udfs.table_files import FILE, TableFile, Target, joined

BROKER, OF_FILE = "broker", "file"
"""Kinds of rows that are only returned: what was read of a broker, and a file that was written."""

_FETCHES = FETCHES.arrow
_SESSIONS = FETCH_SESSIONS.arrow
_OF_BROKER = [pa.field("lines", LONG), pa.field("newest_past", TIMESTAMP)]
LEFT = pa.schema([*_SESSIONS, *_OF_BROKER, pa.field("kind", STRING)])
"""Sessions that go on, and for each broker the number of lines, the time of its newest line, and
that of its newest line or session that is not in the future."""
FOLLOWED = pa.schema([*_FETCHES, *OF_SESSION, *_OF_BROKER, pa.field("kind", STRING)])
WRITTEN = pa.schema([*FILE, *LEFT])
FOLLOWED_SQL, WRITTEN_SQL = sql_columns(FOLLOWED), sql_columns(WRITTEN)

_ROWS_AT_ONCE = 8_000
_ROWS_PER_WRITE = 65_536
_BY_BROKER = ["cluster_id", "broker_id"]

_Batches = Iterator[pa.RecordBatch]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a session may be idle, and what the time is now, both in microseconds.

    Raises ValueError for an `idle_us` that is not positive.
    """

    idle_us: int
    now_us: int

    def __post_init__(self) -> None:
        """Check."""
        if self.idle_us < 1:
            raise ValueError(f"idle_us must be at least 1, got {self.idle_us}")


def follow_sessions(limits: Limits) -> Callable[[_Batches], _Batches]:
    """A function for mapInArrow: ROWS in the order of `fetch_lines.ORDER` in, FOLLOWED out.

    That is lines with what follows from their sessions, and the rows of LEFT. All rows of a KEY
    must be in one partition. One session and some thousand lines are in memory at a time.
    """
    return partial(_returned, limits)


@dataclass(frozen=True, slots=True)
class Read:
    """What tasks read: files of `requests` and of `fetch_sessions`, in bounded memory."""

    relations: Mapping[str, Files]
    tasks: int
    memory_mb: int = DEFAULT_MEMORY_MB


def write_followed(read: Read, limits: Limits, target: Target) -> Callable[[_Batches], _Batches]:
    """A function for mapInArrow: numbers of tasks in, WRITTEN out.

    As `follow_sessions`, but a task reads files, and writes the lines into a file of `target`. Each
    task reads all files and keeps the lines of its sessions.
    """
    return partial(_written, read, limits, target)


def _returned(limits: Limits, batches: _Batches) -> _Batches:
    walk = _Walk(limits)
    for lines in walk.fetches(batches):
        yield _padded(lines, FOLLOWED, FETCH)
    for rows, kind in walk.left():
        yield _padded(rows, FOLLOWED, kind)


def _written(read: Read, limits: Limits, target: Target, batches: _Batches) -> _Batches:
    # To the end first: Spark kills a worker that leaves input unread, which costs 1.5 s a task.
    numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
    for number in numbers:
        walk = _Walk(limits)
        with opened(read.relations, read.memory_mb, cores()) as database, TableFile(target) as file:
            rows = database.query(fetch_lines.query(number, read.tasks), ROWS)
            for lines in joined(walk.fetches(rows), _ROWS_PER_WRITE):
                file.write(pa.Table.from_batches([lines]))
        yield _padded(table_files.described([file]), WRITTEN, OF_FILE)
        for left, kind in walk.left():
            yield _padded(left, WRITTEN, kind)


@dataclass(slots=True)
class _Walk:
    """Follows sessions, and keeps the rows of those that go on and of brokers."""

    limits: Limits
    sessions: list[pa.RecordBatch] = field(default_factory=list)
    brokers: list[pa.Table] = field(default_factory=list)

    def fetches(self, batches: _Batches) -> _Batches:
        """Lines with what follows from their sessions.

        A session whose lines may go on is a row of the next rows, as between two runs.
        """
        carried: list[pa.RecordBatch] = []
        for batch in _cut(joined(batches, _ROWS_AT_ONCE), _ROWS_AT_ONCE):
            self.brokers.append(_brokers(batch, self.limits.now_us))
            # Spark's fields differ: some are not nullable.
            rows = pa.concat_batches([*map(_as_row, carried), batch.cast(ROWS)])
            followed = _Followed.from_rows(rows, self.limits.idle_us)
            if followed.is_fetch.any():
                yield followed.fetches()
            sessions = followed.sessions_left()
            ended = sessions.num_rows - followed.is_last_open
            self.sessions.append(sessions.slice(0, ended))
            carried = [sessions.slice(ended)] if followed.is_last_open else []
        self.sessions += carried

    def left(self) -> Iterator[tuple[pa.RecordBatch, str]]:
        """The rows of LEFT, and their kind."""
        for sessions in self.sessions:
            if sessions.num_rows:
                yield sessions, SESSION
        if self.brokers:
            yield from ((each, BROKER) for each in _merged(self.brokers).to_batches())


@dataclass(frozen=True, slots=True)
class _Followed:
    """Rows that were followed, and each session after the last of its rows, with that row."""

    rows: pa.RecordBatch
    is_fetch: _Flags
    columns: FollowedColumns
    sessions: list[tuple[int, FetchSession]]
    lines: LineColumns

    @classmethod
    def from_rows(cls, rows: pa.RecordBatch, idle_us: int) -> "_Followed":
        """Follow the sessions of rows that are sorted by KEY."""
        lines = LineColumns(rows)
        walked = ~lines.full_and_alone()
        with _without_garbage_collection():
            at, followed, sessions = _walk(rows, lines, walked, idle_us)
            columns = FollowedColumns(lines, at, followed)
        return cls(rows, _is_kind(rows, FETCH), columns, sessions, lines)

    def fetches(self) -> pa.RecordBatch:
        """The rows of `fetches`."""
        mine = self.rows.select([*PASSED, "response_session_id"])
        if not self.is_fetch.all():
            mine = mine.filter(pa.array(self.is_fetch))
        given = {name: mine.column(name) for name in PASSED}
        named_id, answered_id = (
            integers(mine.column(name), 0) for name in ("session_id", "response_session_id")
        )
        is_full = np.isin(self.lines.epochs[self.is_fetch], FULL_EPOCHS)
        given["session_id"] = pa.array(np.where(is_full, answered_id, named_id), LONG)
        given |= self.columns.columns(self.is_fetch)
        return pa.RecordBatch.from_arrays([given[f.name] for f in _FETCHES], schema=_FETCHES)

    @property
    def is_last_open(self) -> bool:
        """Whether the last row leaves a session."""
        return bool(self.sessions) and self.sessions[-1][0] == self.rows.num_rows - 1

    def sessions_left(self) -> pa.RecordBatch:
        """The rows of `fetch_sessions`, with who fetched last."""
        sessions = [session for _, session in self.sessions]
        names = ("cluster_id", "broker_id", "session", "principal", "client_id", "replica_id")
        last = self.rows.select(names).take(pa.array([at for at, _ in self.sessions], LONG))
        given: dict[str, pa.Array] = dict(zip(names, last.columns, strict=True))
        given["session_id"] = given.pop("session")
        numbers = {
            "event_time": [one.last_us for one in sessions],
            "start_time": [one.began_us for one in sessions],
            "next_epoch": [one.next_epoch for one in sessions],
        }
        for name, values in numbers.items():
            given[name] = pa.array(values, _SESSIONS.field(name).type)
        given["cached_partitions"] = _cached_partitions(sessions, self.lines)
        return pa.RecordBatch.from_arrays([given[f.name] for f in _SESSIONS], schema=_SESSIONS)


def _walk(
    rows: pa.RecordBatch, lines: LineColumns, walked: _Flags, idle_us: int
) -> tuple[list[int], list[FollowedLine], list[tuple[int, FetchSession]]]:
    """Follow lines by the rules: their rows, what follows, and the sessions after their last rows.

    Rows that are not `walked` belong to no session.
    """
    restored = _restored(rows, lines)
    session_ids, is_walked = integers(rows.column("session"), 0).tolist(), walked.tolist()
    numbered_lines = lines.lines(walked)
    at_rows: list[int] = []
    followed: list[FollowedLine] = []
    sessions: list[tuple[int, FetchSession]] = []
    for start, stop in key_runs(rows, KEY):
        session, session_id = None, session_ids[start]
        mine = compress(range(start, stop), is_walked[start:stop])
        for at, line in zip(mine, numbered_lines, strict=False):
            if at in restored:
                session = restored[at]
                continue
            one = follow(session, session_id, line, idle_us)
            session = one.session
            at_rows.append(at)
            followed.append(one)
        if session is not None:
            sessions.append((stop - 1, session))
    return at_rows, followed, sessions


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Search for no cycles of objects: there are none, and the search takes a fifth of a walk."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _restored(rows: pa.RecordBatch, lines: LineColumns) -> dict[int, FetchSession]:
    """The carried sessions, by row."""
    is_session = _is_kind(rows, SESSION)
    if not is_session.any():
        return {}
    at_rows = np.flatnonzero(is_session)
    names = ("start_time", "event_time", "next_epoch")
    started, last, epochs = (integers(rows.column(name), 0)[at_rows].tolist() for name in names)
    is_valid = rows.column("cached_partitions").is_valid().to_numpy(zero_copy_only=False)
    valid = is_valid[at_rows].tolist()
    cached = (c if v else None for c, v in zip(lines.cached(at_rows), valid, strict=True))
    sessions = map(FetchSession.restored, started, last, epochs, cached)
    return dict(zip(at_rows.tolist(), sessions, strict=True))


def _is_kind(rows: pa.RecordBatch, kind: str) -> _Flags:
    is_kind: _Flags = pc.equal(rows.column("kind"), kind).to_numpy(zero_copy_only=False)
    return is_kind


def _cached_partitions(sessions: list[FetchSession], lines: LineColumns) -> pa.Array:
    cached = [one.cached_partitions() for one in sessions]
    kept = [one for each in cached for one in each]
    numbers = {
        "fetch_offset": [one.fetch_offset for one in kept],
        "partition_max_bytes": [one.max_bytes for one in kept],
        "end_offset": [one.end_offset for one in kept],
    }
    codes = [one.partition for one in kept]
    values = lines.codes.structs(codes, FETCH_SESSIONS.element("cached_partitions"), numbers)
    is_lost = pa.array([not one.is_valid for one in sessions], BOOLEAN)
    return pa.ListArray.from_arrays(offsets_of([len(one) for one in cached]), values, mask=is_lost)


def _brokers(rows: pa.RecordBatch, now_us: int) -> pa.Table:
    """The rows of each broker: lines, the newest of them, and the newest row of the past."""
    times, is_line = integers(rows.column("event_time"), 0), _is_kind(rows, FETCH)
    columns = {
        "cluster_id": rows.column("cluster_id"),
        "broker_id": rows.column("broker_id"),
        "event_time": pa.array(times, TIMESTAMP, mask=~is_line),
        "lines": pa.array(is_line.astype(np.int64)),
        "newest_past": pa.array(times, TIMESTAMP, mask=times > now_us),
    }
    return _merged([pa.table(columns)])


def _merged(brokers: Sequence[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(brokers).group_by(_BY_BROKER, use_threads=False)
    merged = grouped.aggregate([("event_time", "max"), ("lines", "sum"), ("newest_past", "max")])
    return merged.rename_columns([*_BY_BROKER, "event_time", "lines", "newest_past"])


def _cut(batches: _Batches, rows: int) -> _Batches:
    """The same rows in batches of at most so many."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _as_row(sessions: pa.RecordBatch) -> pa.RecordBatch:
    """Sessions as rows to be followed."""
    row = _padded(sessions, ROWS, SESSION)
    return row.set_column(ROWS.get_field_index("session"), "session", sessions["session_id"])


def _padded(rows: pa.RecordBatch, schema: pa.Schema, kind: str) -> pa.RecordBatch:
    """The rows in the columns of a schema; those that they lack are null."""
    given = dict(zip(rows.schema.names, rows.columns, strict=True))
    given["kind"] = pa.repeat(pa.scalar(kind, STRING), rows.num_rows)
    arrays = [given[f.name] if f.name in given else pa.nulls(rows.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
