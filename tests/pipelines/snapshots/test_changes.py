"""Rows of changes: what is new, changed or removed, and none for unanswered parts."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotaflow.pipelines.snapshots.changes import changes, current_rows, newest_rows
from quotaflow.pipelines.snapshots.observations import UnansweredPart
from quotaflow.schemas.table import BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.declared import BROKERS, REPLICA_SIZES, REPLICAS

from ...cases import cases
from ...delta_tables import NOON
from .snapshot_scenes import at

Row = dict[str, Any]


def arrow(table: Table, rows: Iterable[Row], time: datetime = NOON) -> pa.Table:
    common = {"cluster_id": "c1", "is_removed": False, table.time: time}
    return pa.Table.from_pylist([common | row for row in rows], schema=table.arrow)


SIZES = [
    {"topic": topic, "partition": 0, "broker_id": broker_id, "log_dir": log_dir, "size_bytes": 1}
    for topic in ("a", "b")
    for broker_id in (1, 2)
    for log_dir in ("/x", "/y")
]


@cases(
    ("gaps", "removed"),
    ("all is answered", [], 8),
    ("nothing is answered", [UnansweredPart("X")], 0),
    ("but for a column", [UnansweredPart("X", columns=("offset_lag",))], 8),
    ("one broker is silent", [UnansweredPart("X", {"broker_id": 1})], 4),
    ("one of its log dirs", [UnansweredPart("X", {"broker_id": 1, "log_dir": "/x"})], 6),
    (
        "each of several, named twice or of the same rows",
        [
            UnansweredPart("X", {"broker_id": 1}),
            UnansweredPart("Y", {"broker_id": 1}),
            UnansweredPart("X", {"topic": "a"}),
        ],
        2,
    ),
    ("one that has no rows", [UnansweredPart("X", {"broker_id": 9})], 8),
)
def test_what_is_unanswered_stays(gaps: list[UnansweredPart], removed: int) -> None:
    current = arrow(REPLICA_SIZES, SIZES)
    rows = changes(current.slice(0, 0), current, REPLICA_SIZES, at(1), gaps).to_pylist()
    assert len(rows) == removed
    assert all(row["is_removed"] and row["size_bytes"] is None for row in rows)


def test_a_column_that_is_unanswered_keeps_its_value() -> None:
    broker = {"broker_id": 1, "port": 1, "is_controller": True}
    current = arrow(BROKERS, [broker, broker | {"broker_id": 2}])
    seen = arrow(BROKERS, [broker, broker | {"broker_id": 2, "port": 9}, {"broker_id": 3}])
    rows = changes(seen.drop_columns(["is_controller"]), current, BROKERS, at(1)).to_pylist()
    assert sorted((row["broker_id"], row["port"], row["is_controller"]) for row in rows) == [
        (2, 9, True),
        (3, None, None),
    ]


def test_a_removed_row_keeps_its_identity_and_what_its_table_is_clustered_by() -> None:
    replica = {"topic_id": "i", "topic": "t", "partition": 0, "broker_id": 1, "is_leader": True}
    current = arrow(REPLICAS, [replica])
    (row,) = changes(current.slice(0, 0), current, REPLICAS, at(1)).to_pylist()
    kept = replica | {"cluster_id": "c1", "event_time": at(1), "is_removed": True}
    assert row == dict.fromkeys(REPLICAS.column_names) | kept | {"is_leader": None}


EVERY_TYPE = Table(
    name="every_type",
    comment="A row for each identity, with a column of every kind of type",
    columns=(
        Column("cluster_id", STRING, "cluster"),
        Column("event_time", TIMESTAMP, "when a snapshot saw it"),
        Column("name", STRING, "identity"),
        Column("number", INT, "identity"),
        Column("text", STRING, "some text"),
        Column("ratio", DOUBLE, "some number"),
        Column("day", DATE, "some day"),
        Column("seen_at", TIMESTAMP, "some time"),
        Column("names", pa.list_(STRING), "some texts"),
        Column("counts", pa.map_(STRING, INT), "some numbers"),
        Column("pair", pa.struct([("a", INT), ("b", STRING)]), "some pair"),
        Column("is_removed", BOOLEAN, "it was removed"),
    ),
    key=("cluster_id", "name", "number", "event_time"),
    time="event_time",
    clustering=("event_time", "name"),
)
_TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=2)
_INTS = st.none() | st.integers(-(2**31), 2**31 - 1)
_TIMES = st.datetimes(timezones=st.just(UTC))
_KEYS = st.sampled_from(["", "a", "b"])
_VALUES = st.fixed_dictionaries(
    {
        "text": _TEXTS,
        # 0.0 and -0.0 are equal, and written alike.
        "ratio": st.none() | st.floats().map(lambda number: number + 0.0),
        "day": st.none() | st.dates(),
        "seen_at": st.none() | _TIMES,
        "names": st.none() | st.lists(_TEXTS, max_size=2),
        "counts": st.none() | st.dictionaries(_KEYS, _INTS).map(lambda d: [*d.items()]),
        "pair": st.none() | st.fixed_dictionaries({"a": _INTS, "b": _TEXTS}),
    }
)
_IDENTITIES = st.tuples(st.sampled_from([None, "", "x", "y"]), st.sampled_from([None, 0, 1]))
_OBSERVATIONS = st.dictionaries(_IDENTITIES, _VALUES, max_size=4).map(
    lambda rows: [{"name": a, "number": b} | rest for (a, b), rest in rows.items()]
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@settings(max_examples=25)
@given(_OBSERVATIONS, _OBSERVATIONS)
def test_after_any_two_snapshots_the_current_rows_are_those_of_the_second(
    connection: duckdb.DuckDBPyConnection, first: list[Row], second: list[Row]
) -> None:
    history = current = EVERY_TYPE.arrow.empty_table()
    for minute, observation in enumerate((first, second)):
        observed = arrow(EVERY_TYPE, observation)
        changed = changes(observed, current, EVERY_TYPE, at(minute))
        history = pa.concat_tables([history, changed])
        connection.register("history", history)
        newest = connection.sql(newest_rows(EVERY_TYPE, "history", "cluster_id = 'c1'"))
        current = current_rows(newest.to_arrow_table().cast(EVERY_TYPE.arrow))
        assert contents(current) == contents(observed)
    assert not changes(arrow(EVERY_TYPE, second), current, EVERY_TYPE, at(2)).num_rows


def contents(rows: pa.Table) -> list[str]:
    """The rows without their times, in order; NaN equals NaN."""
    return sorted(map(repr, rows.drop_columns([EVERY_TYPE.time]).to_pylist()))
