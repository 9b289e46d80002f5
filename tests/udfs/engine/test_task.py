"""What a Spark task runs, without Spark."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from quotaflow.schemas.table import LONG, TIMESTAMP
from quotaflow.udfs.engine.database import Selection
from quotaflow.udfs.engine.rule import Batches, Rule
from quotaflow.udfs.engine.task import TASK, Piece, Task, over_relations, over_rows

from ...delta_tables import NOON

SCHEMA = pa.schema([("event_time", TIMESTAMP), ("n", LONG)])


def facts(*numbers: int) -> pa.Table:
    return pa.Table.from_pylist([{"event_time": NOON, "n": n} for n in numbers], schema=SCHEMA)


def piece(name: str, sql: str = "SELECT event_time, n FROM facts") -> Piece:
    return Piece(Rule(name, sql, SCHEMA), {"facts": Selection()}, "true")


def numbers(*tasks: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"id": list(tasks)})


def gathered(output: Batches) -> dict[tuple[int, str], list[int] | str]:
    got: dict[tuple[int, str], list[int] | str] = {}
    for batch in output:
        for row in batch.to_pylist():
            key = row["task"], row["rule"]
            if row["error"] is not None:
                got[key] = f"{row['error_type']}: {row['error']}"
            else:
                rows = pa.ipc.open_stream(row["rows"]).read_all()
                got[key] = [*got.get(key, []), *rows["n"].to_pylist()]
    return got


def test_a_task_computes_its_pieces() -> None:
    tasks = [
        Task({"facts": facts(1, 2)}, [piece("a")]),
        Task(
            {"facts": facts(3)},
            [piece("a"), piece("b", "SELECT event_time, 10 * n AS n FROM facts")],
        ),
    ]
    got = gathered(over_relations(tasks)(numbers(1, 0)))
    assert got == {(0, "a"): [1, 2], (1, "a"): [3], (1, "b"): [30]}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT event_time, no_column AS n FROM facts",
        "SELECT event_time, CAST('x' AS BIGINT) AS n FROM facts",
        "SELECT event_time, 9223372036854775807::HUGEINT + n AS n FROM facts",
    ],
)
def test_the_error_of_one_rule_replaces_its_rows_alone(sql: str) -> None:
    task = Task({"facts": facts(1)}, [piece("before"), piece("bad", sql), piece("after")])
    got = gathered(over_relations([task])(numbers(0)))
    assert (got[0, "before"], got[0, "after"]) == ([1], [1])
    assert "Error" in got[0, "bad"] or "Invalid" in str(got[0, "bad"])


def test_a_task_reads_its_input_to_the_end_before_it_computes() -> None:
    read = []

    def numbered() -> Iterator[pa.RecordBatch]:
        for number in (0, 0):
            read.append(number)
            yield pa.record_batch({"id": [number]})

    next(over_relations([Task({"facts": facts(1)}, [piece("a")])])(numbered()))
    assert read == [0, 0]


def test_facts_that_spark_passes_are_computed_by_span() -> None:
    rows = facts(1, 2, 3, 4).append_column(TASK, pa.array([0, 1, 0, 2], pa.int32()))
    tasks = [Task({}, [piece("a")]) for _ in range(4)]
    batches = (batch for at in (0, 2) for batch in rows.slice(at, 2).to_batches())
    got = gathered(over_rows(tasks, "facts", SCHEMA)(batches))
    assert got == {(0, "a"): [1, 3], (1, "a"): [2], (2, "a"): [4]}


def test_a_span_without_facts_has_no_rows() -> None:
    assert gathered(over_rows([Task({}, [piece("a")])], "facts", SCHEMA)(iter([]))) == {}
