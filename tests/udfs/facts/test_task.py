"""What tasks make of records: the same rows by both ways, for any cut of the records."""

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from quotaflow.pipelines.config import IngestSection
from quotaflow.schemas import ddl
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.facts import task
from quotaflow.udfs.facts.requests import RequestLog
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.table_files import Target

from ...record_batches import record_batch

LOG = RequestLog("cluster", IngestSection().line_options, Limits(), None)
FILLED = ("requests", "telemetry_pushes", "telemetry_subscriptions", "quarantine")
Rows = dict[str, list[str]]


@pytest.fixture(scope="module")
def records(golden: Path) -> pa.RecordBatch:
    files = sorted((golden / "lines").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    return record_batch([*lines, b"hello", b"", b'{"level":"INFO"}'])


def by_files(folder: Path, batches: list[pa.RecordBatch]) -> tuple[Rows, Counter[Any]]:
    targets = []
    for name in FILLED:
        (folder / name).mkdir(parents=True)
        indexed = tuple(ddl.lookup_key(TABLES[name]))
        targets.append(Target(name, str(folder / name), TABLES[name].arrow, indexed))
    (output,) = task.to_files(LOG, targets)(iter(batches))
    rows = Rows()
    for row in output.to_pylist():
        if row["path"]:
            path = folder / row["table"] / row["path"]
            assert path.stat().st_size == row["size_bytes"]
            table = duckdb.sql("FROM read_parquet($1)", params=[str(path)]).to_arrow_table()
            assert table.num_rows == row["rows"]
            rows[row["table"]] = as_texts(table.cast(TABLES[row["table"]].arrow))
    return rows, counted(output)


def by_rows(batches: list[pa.RecordBatch]) -> tuple[Rows, Counter[Any]]:
    output = pa.Table.from_batches(task.to_rows(LOG)(iter(batches)))
    rows = Rows()
    for name in FILLED:
        packed = [row for row in output.to_pylist() if row["table"] == name and row["stream"]]
        streams = pa.RecordBatch.from_pylist(packed, schema=task.PACKED).select(["stream"])
        table = pa.Table.from_batches(task.unpacked(iter([streams])), TABLES[name].arrow)
        rows[name] = as_texts(table)
    return rows, counted(output.combine_chunks().to_batches()[0])


def counted(output: pa.RecordBatch) -> Counter[Any]:
    counts = [row for row in output.to_pylist() if row["outcome"]]
    return Counter({(r["outcome"], r["table"], r["reason"]): r["rows"] for r in counts})


def as_texts(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_files_and_rows_are_the_same_for_any_cut(records: pa.RecordBatch, tmp_path: Path) -> None:
    whole = by_files(tmp_path / "whole", [records])
    assert all(whole[0][name] for name in FILLED)
    cut = [records.slice(at, 29) for at in range(0, records.num_rows, 29)]
    assert by_files(tmp_path / "cut", cut) == whole
    assert by_rows([records]) == whole
    assert by_rows(cut) == whole


def test_no_records_are_no_files_and_no_counts(tmp_path: Path) -> None:
    assert by_files(tmp_path, []) == ({}, Counter())
