"""Alerts over readings sorted by series and time."""

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import xxhash

from quotaflow.schemas.table import BOOLEAN, DOUBLE, LONG, STRING
from quotaflow.udfs.engine.rule import Batches
from quotaflow.udfs.key_runs import Key, key_at, key_runs
from quotaflow.udfs.rules.alert import AlertState, Breach, Event, ThresholdRule, end, step

KEY = ("cluster_id", "rule", "series_id")
ORDER = (*KEY, "event_ms", "is_carried", "value")
"""A carried row sorts after the readings of its own time, because it includes them."""

READINGS = pa.schema(
    [
        pa.field("cluster_id", STRING),
        pa.field("rule", STRING),
        pa.field("series_id", LONG),
        pa.field("event_ms", LONG),
        pa.field("is_carried", BOOLEAN),
        pa.field("value", DOUBLE),
    ]
)
EVENT = pa.schema(
    [
        pa.field("state", STRING),
        pa.field("reason", STRING),
        pa.field("first_breach_ms", LONG),
        pa.field("peak_value", DOUBLE),
        pa.field("points", LONG),
    ]
)
LAST_READING = pa.field("last_reading_ms", LONG)
ALERT_ID = pa.field("alert_id", STRING)

# Conf does not say when alerts of a removed rule end, so they go stale after an hour.
_RETIRED = ThresholdRule("retired", bound=0, clear=0, for_ms=0, stale_ms=3_600_000)

_Row = tuple[pa.RecordBatch, int]
_Event = list[tuple[Event, _Row]]


def find_alerts(rules: Mapping[str, ThresholdRule]) -> Callable[[Batches], Batches]:
    """A function for a Walk: READINGS and EVENT sorted by ORDER in, events out.

    In readings the columns of EVENT are null. A row with `is_carried` is an event that the table
    has already, and includes all readings up to it. An event has the columns of the reading it
    follows from, further columns included, its own time, LAST_READING and ALERT_ID. Of readings at
    one time the lowest counts, and NaN is no reading. Times and values must not be null.
    """
    return partial(_find, rules)


def alert_id(cluster_id: str, rule: str, series_id: int, first_breach_ms: int) -> str:
    """The identity of an alert: 16 hexadecimal digits.

    Equal to xxhash64 of the same columns in Spark SQL, so that alerts keep their identities. There
    the hash of a column is the seed for the next column, and the first seed is 42.
    """
    digest = 42
    for value in (cluster_id, rule, series_id, first_breach_ms):
        data = value.encode() if isinstance(value, str) else struct.pack("<q", value)
        digest = xxhash.xxh64_intdigest(data, digest)
    return f"{digest:016x}"


def _find(rules: Mapping[str, ThresholdRule], batches: Batches) -> Iterator[pa.RecordBatch]:
    walk: _Walk | None = None
    for batch in batches:
        events: _Event = []
        for start, stop in key_runs(batch, KEY):
            key = key_at(batch, KEY, start)
            if walk is None or key != walk.key:
                events += walk.ended() if walk else []
                walk = _Walk(key, rules.get(str(key[1]), _RETIRED))
            events += walk.follow(batch.slice(start, stop - start))
        yield from _rows(events)
    yield from _rows(walk.ended() if walk else [])


@dataclass(slots=True)
class _Walk:
    """One series under one rule: the breach it is in, and its last reading."""

    key: Key
    rule: ThresholdRule
    breach: Breach | None = None
    last_ms: int | None = None
    last: _Row | None = None

    def follow(self, rows: pa.RecordBatch) -> _Event:
        followed: _Event = []
        names = ("event_ms", "value", "is_carried")
        columns = (rows.column(name).to_pylist() for name in names)
        for at, (time_ms, value, is_carried) in enumerate(zip(*columns, strict=True)):
            row = (rows, at)
            before = self.last or row
            if is_carried:
                self.breach = _carried(rows.slice(at, 1), time_ms)
            elif time_ms == self.last_ms or math.isnan(value):
                continue
            else:
                self.breach, events = step(self.rule, self.breach, time_ms, value)
                # A stale alert follows from the reading before the gap.
                followed += [(e, row if e.time_ms == time_ms else before) for e in events]
            self.last_ms, self.last = time_ms, row
        return followed

    def ended(self) -> _Event:
        return [(event, self.last) for event in end(self.rule, self.breach) if self.last]


def _carried(row: pa.RecordBatch, time_ms: int) -> Breach | None:
    state, _, first_ms, peak, points = (row.column(name)[0].as_py() for name in EVENT.names)
    closed = state == AlertState.CLOSED
    return None if closed else Breach(first_ms, time_ms, peak, points, last_event_ms=time_ms)


def _rows(events: _Event) -> Iterator[pa.RecordBatch]:
    if not events:
        return
    rows = pa.concat_batches([rows.slice(at, 1) for _, (rows, at) in events])
    values = [_event_row(event) for event, _ in events]
    columns = {name: rows.column(name) for name in rows.schema.names}
    columns["event_ms"] = pa.array([event.time_ms for event, _ in events], LONG)
    columns |= {f.name: pa.array([one[f.name] for one in values], f.type) for f in EVENT}
    last_ms = [event.breach.last_ms for event, _ in events]
    columns[LAST_READING.name] = pa.array(last_ms, LAST_READING.type)
    identity = (columns[name].to_pylist() for name in (*KEY, "first_breach_ms"))
    ids = [alert_id(*one) for one in zip(*identity, strict=True)]
    yield pa.RecordBatch.from_pydict(columns | {ALERT_ID.name: pa.array(ids, ALERT_ID.type)})


def _event_row(event: Event) -> dict[str, object]:
    breach = event.breach
    return {
        "state": event.state,
        "reason": event.reason,
        "first_breach_ms": breach.first_ms,
        "peak_value": breach.peak,
        "points": breach.points,
    }
