"""The search that other tests trust finds a text however it is packed."""

import base64
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quotaflow.udfs.otlp.codecs import compress

from .planted import files_with

SECRET = "planted-7f3e9"
WRITTEN: dict[str, Callable[[Path], object]] = {
    "a log": lambda folder: (folder / "a.log").write_text(f"x {SECRET} y"),
    "a name": lambda folder: (folder / SECRET).write_text("x"),
    "a packed log": lambda folder: (folder / "a.gz").write_bytes(gzip.compress(SECRET.encode())),
    "a cell": lambda folder: table(folder, [SECRET] * 9),
    "a map": lambda folder: table(folder, [{"a": [SECRET]}]),
    "a payload": lambda folder: table(folder, [compress(SECRET.encode() * 9, "zstd")]),
    "base64": lambda folder: table(folder, [base64.b64encode(SECRET.encode() * 2).decode()]),
}


def table(folder: Path, cells: list[object]) -> None:
    pq.write_table(pa.table({"c": pa.array(cells)}), folder / "t.parquet", compression="zstd")


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
def test_a_planted_text_is_found(write: Callable[[Path], object], tmp_path: Path) -> None:
    write(tmp_path)
    assert len(files_with(tmp_path, [SECRET, "another"])) == 1


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    table(tmp_path, ["other", "text"])
    assert files_with(tmp_path, [SECRET]) == []


def test_nothing_to_search_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="is empty"):
        files_with(tmp_path, [SECRET])
