"""Kafka records as texts: any bytes, any time, any headers."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.schemas.table import LONG, TIMESTAMP
from quotaflow.udfs.request_log import records


def test_a_time_that_no_record_can_have_is_none() -> None:
    us = [1_795_219_200_000_000, 1_795_219_200_000_000_000, -1_000, 0, 1_262_304_000_000_000, None]
    times = records.plausible(pa.array(us, LONG).cast(TIMESTAMP)).cast(LONG).to_pylist()
    assert times == [us[0], None, None, None, us[4], None]


@given(st.lists(st.none() | st.binary(max_size=20)))
def test_bytes_are_text_as_python_replaces_what_is_none(values: list[bytes | None]) -> None:
    texts = records.as_text(pa.array(values, pa.binary())).to_pylist()
    assert texts == [v if v is None else v.decode("utf-8", "replace") for v in values]


def test_the_first_header_of_a_name_counts() -> None:
    headers = [
        [("a", b"1"), ("b", b"2"), ("a", b"3")],
        None,
        [],
        [("b", b"4"), ("a", None)],
        [("a", b"\xff")],
    ]
    rows = [r and [{"key": k, "value": v} for k, v in r] for r in headers]
    array = pa.array(rows, records.RECORDS.field("headers").type)
    assert records.header(array, "a").to_pylist() == ["1", None, None, None, "\ufffd"]
    # A slice has its values behind an offset.
    assert records.header(array.slice(3), "b").to_pylist() == ["4", None]


@given(st.lists(st.integers(1, 400_000), max_size=40))
def test_parts_have_every_text_once_in_order(sizes: list[int]) -> None:
    texts = pa.table(
        {
            "line": pa.array(range(len(sizes)), pa.int32()),
            "text": pa.array(["x" * size for size in sizes], pa.string()),
        }
    )
    parts = list(records.in_parts(texts, most_bytes=1_000_000))
    assert [line for part in parts for line in part["line"].to_pylist()] == list(range(len(sizes)))
    assert all(part.num_rows for part in parts)
    for part in parts:
        size = sum(map(len, part["text"].to_pylist()))
        assert part.num_rows == 1 or size <= 1_400_000
