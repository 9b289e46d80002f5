"""A rule reads its own time and its own facts, beside any other rules."""

from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.folder import folder_task
from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.compute.schedule import TaskPlan
from quotaflow.pipelines.warehouse import folder_tables
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.table import LONG, TIMESTAMP
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs.engine.rule import Rule
from quotaflow.udfs.engine.task import over_relations

from ...delta_tables import NOON
from ...rows import Row

FEW, MANY = 1_000, 10_000_000
"""A task with few facts reads them from files once."""
MINUTES = 30
PROBE = """
SELECT max(event_time) AS event_time, count(*) AS facts, min(epoch_seconds(event_time)) AS first
FROM requests
"""
PROBED = pa.schema([("event_time", TIMESTAMP), ("facts", LONG), ("first", LONG)])


@cache
def relations() -> FolderRelations:
    """A fact every ten seconds, in files of five minutes."""
    place = Place.local(Path(mkdtemp()))
    folder_tables.create(place, REQUESTS)
    for start in range(0, 60 * MINUTES, 300):
        rows = [
            {
                "cluster_id": "c",
                "broker_id": second // 10 % 3,
                "event_time": NOON + timedelta(seconds=second),
            }
            for second in range(start, start + 300, 10)
        ]
        content = pa.Table.from_pylist(rows, schema=REQUESTS.arrow)
        write_deltalake(place.path(REQUESTS.name), content, mode="append")
    return FolderRelations(place)


def part(name: str, minute: int, lookback_s: int, relevant: str) -> Computation:
    """A rule over the minutes from one on that says how many facts it read, and the first."""
    start = NOON + timedelta(minutes=minute)
    result = Result(
        TABLES["traffic"], REQUESTS, 60, lookback_s, Rule(name, PROBE, PROBED), relevant
    )
    return Computation(result, (TimeRange(start, start + timedelta(minutes=2)),))


def read_by(name: str, parts: list[Computation], facts: int) -> tuple[list[Row], set[str]]:
    """What a rule of a task read: its row, and its files."""
    task = folder_task(TaskPlan(tuple(parts), facts), relations())
    output = pa.Table.from_batches(over_relations([task])(iter([pa.record_batch({"id": [0]})])))
    assert output["error"].null_count == output.num_rows
    (rows,) = [row["rows"] for row in output.to_pylist() if row["rule"] == name]
    (piece,) = [each for each in task.pieces if each.rule.name == name]
    files = piece.selections[REQUESTS.name].files
    assert files is not None
    return pa.ipc.open_stream(rows).read_all().to_pylist(), set(files.paths)


READS = st.tuples(
    st.integers(0, MINUTES - 2),
    st.sampled_from([0, 30, 60, 600, 3_600]),
    st.sampled_from(["true", "broker_id = 1", "broker_id IN (0, 1)"]),
)


@pytest.mark.parametrize("facts", [FEW, MANY])
@given(own=READS, others=st.lists(READS, max_size=4), place=st.integers(0, 4))
def test_what_a_rule_reads_does_not_depend_on_its_neighbours(
    facts: int,
    own: tuple[int, int, str],
    others: list[tuple[int, int, str]],
    place: int,
) -> None:
    alone = part("own", *own)
    beside = [part(f"other {n}", *each) for n, each in enumerate(others)]
    together = [*beside[:place], alone, *beside[place:]]
    assert read_by("own", together, facts) == read_by("own", [alone], facts)


def test_a_long_lookback_is_of_its_rule_alone() -> None:
    parts = [part("short", 20, 0, "true"), part("long", 20, 600, "true")]
    (short, short_files), (long, long_files) = (
        read_by(name, parts, MANY) for name in ("short", "long")
    )
    assert (short[0]["facts"], long[0]["facts"]) == (12, 72)
    assert (len(short_files), len(long_files)) == (1, 3)
