"""Each request counts once, in all batches and orders in which a shipper sends lines again."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines.facts import duplicates
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.schemas.ddl import lookup_key
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs.request_log.columns import OF_ONE_REQUEST
from quotaflow.udfs.table_files import TableFile

from ...examples import EXPENSIVE

AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
REQUEST = {
    "cluster_id": "cluster",
    "event_time": AT,
    "broker_id": 1,
    "api": "PRODUCE",
    "connection_id": "10.0.0.1:9092-10.0.0.9:58132-0-7",
    "correlation_id": 7,
    "total_time_ms": 1.5,
    "local_time_ms": 0.5,
    "source_topic": "logs",
    "record_time": AT,
}
OTHERS: dict[str, Any] = {
    "connection_id": "10.0.0.1:9092-10.0.0.9:58132-0-8",
    "correlation_id": 8,
    "api": "FETCH",
    "broker_id": None,
    "event_time": AT + timedelta(milliseconds=1),
    "total_time_ms": None,
    "local_time_ms": 0.6,
}


def ingest(place: Place, rows: Iterable[dict[str, Any]]) -> int:
    """Append rows as one batch does, in a file for each partition. Returns how many came before."""
    target = place.target(REQUESTS, lookup_key(REQUESTS))
    Path(target.folder).mkdir(exist_ok=True)
    batch = list(rows)
    files = []
    for partition in sorted({row["source_partition"] for row in batch}):
        of_partition = [row for row in batch if row["source_partition"] == partition]
        with TableFile(target) as made:
            made.write(pa.Table.from_pylist(of_partition, schema=REQUESTS.arrow))
        files.append(made.described() or {})
    repeated = duplicates.in_files(place, files)
    kept = [
        made
        for file in files
        if (made := duplicates.rewritten(target, file, REQUESTS, repeated, place)) is not None
    ]
    read = [pq.read_table(f"{target.folder}/{file['path']}") for file in kept]
    if read:
        write_deltalake(target.folder, pa.concat_tables(read), mode="append")
    return repeated.num_rows


def stored(place: Place) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = place.open(REQUESTS.name).to_pyarrow_table().to_pylist()
    return rows


SENT = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=30
)
"""Request, partition and batch of each line that is sent."""


@EXPENSIVE
@given(SENT)
def test_any_lines_that_come_again_in_any_order_leave_each_request_once(
    sent: Sequence[tuple[int, int, int]],
) -> None:
    rows = [
        REQUEST
        | {"correlation_id": number, "event_time": AT + timedelta(hours=number)}
        | {"source_partition": partition, "source_offset": offset}
        | {"record_time": AT + timedelta(hours=number, seconds=offset)}
        for offset, (number, partition, _) in enumerate(sent)
    ]
    with TemporaryDirectory() as folder:
        place = Place.local(Path(folder))
        repeated = sum(
            ingest(place, batch)
            for nth in range(4)
            if (batch := [row for row, (*_, at) in zip(rows, sent, strict=True) if at == nth])
        )
        left = stored(place)
    assert sorted(row["correlation_id"] for row in left) == sorted({each for each, *_ in sent})
    assert repeated == len(rows) - len(left)


@pytest.mark.parametrize("name", OF_ONE_REQUEST)
def test_what_differs_in_one_value_is_another_request(name: str, tmp_path: Path) -> None:
    place = Place.local(tmp_path)
    at = partial(REQUEST.__or__)
    assert ingest(place, [at({"source_partition": 0, "source_offset": 0})]) == 0
    other = {name: OTHERS[name], "source_partition": 0, "source_offset": 1}
    assert ingest(place, [at(other)]) == 0
    assert ingest(place, [at(other | {"source_offset": 2})]) == 1
    assert len(stored(place)) == 2


@pytest.mark.parametrize("name", ["connection_id", "correlation_id", "api"])
def test_a_line_that_does_not_say_which_request_it_is_of_stays(name: str, tmp_path: Path) -> None:
    row = REQUEST | {name: None, "source_partition": 0}
    assert ingest(Place.local(tmp_path), [row | {"source_offset": n} for n in range(3)]) == 0


def test_the_record_that_was_written_first_stays(tmp_path: Path) -> None:
    """A request is late only if each of its records is."""
    place = Place.local(tmp_path)
    later = {"record_time": AT + timedelta(hours=2), "source_partition": 0, "source_offset": 0}
    first = {"source_partition": 1, "source_offset": 9}
    assert ingest(place, [REQUEST | later, REQUEST | first]) == 1
    assert [row["record_time"].astimezone(UTC) for row in stored(place)] == [AT]
