"""Requests that came twice, because a shipper sent their lines again: each counts once.

A shipper that crashed sends again what no broker had confirmed. One that follows a file which was
copied and truncated reads the whole file again. `columns.OF_ONE_REQUEST` is what is compared.

A line without a time of its own has that of its record. So has one whose time conf's
max_clock_skew_s cuts. A second record of such a line is another request.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.python_times import time_of
from quotaflow.pipelines.warehouse.time_ranges import (
    Literal,
    TimeRange,
    any_of,
    in_duckdb,
    in_spark,
)
from quotaflow.schemas.table import LONG, Table
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs.engine.database import opened, quoted_name
from quotaflow.udfs.request_log import columns
from quotaflow.udfs.table_files import TableFile, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RECORD = ("source_topic", "source_partition", "source_offset", "source_line")
RECORDS = pa.schema([REQUESTS.arrow.field(name) for name in _RECORD])
"""The columns that say which line of which record a row was read from."""

_TIME_ENDS = pa.schema([pa.field("first_us", LONG), pa.field("last_us", LONG)])
_MICROSECOND = timedelta(microseconds=1)


class _Dialect(NamedTuple):
    """What two SQL dialects name differently, and the relations' names."""

    us: str
    hashed: str
    literal: Literal
    arrived: str
    stored: str


_DUCKDB = _Dialect("epoch_us", "hash", in_duckdb, "arrived", "stored")
_SPARK = _Dialect("unix_micros", "xxhash64", in_spark, "{arrived}", "{stored}")

_VALUES = {name: name for name in columns.CONNECTION_AND_NUMBER} | {
    "event_time": "<us>(event_time)"
}
_KEY = {f"of_{name}": _VALUES.get(name, f"coalesce({name}, -1)") for name in columns.OF_ONE_REQUEST}
"""Without nulls: so two records of one request join by equality."""
_PLACE = {
    "source_topic": "source_topic",
    "source_partition": "source_partition",
    "source_offset": "source_offset",
    "line": "coalesce(source_line, -1)",
}
_TIMES = """
WITH ends AS (
    SELECT min(<us>(event_time)) AS oldest, max(<us>(event_time)) AS newest FROM <arrived>
)
SELECT min(<us>(event_time)) AS first_us, max(<us>(event_time)) AS last_us
FROM <arrived> CROSS JOIN ends
GROUP BY floor((<us>(event_time) - oldest) / greatest(60000000, (newest - oldest) / 64))
"""
"""Where the times of new rows are: one broker whose clock is far off adds little."""
_HASHED = """
SELECT count(*) AS several FROM (
    SELECT hashed FROM (
        SELECT <hashed>(<key>) AS hashed FROM <stored> WHERE <is_known> AND (<within>)
        UNION ALL
        SELECT <hashed>(<key>) AS hashed FROM <arrived> WHERE <is_known>
    ) GROUP BY hashed HAVING count(*) > 1
)
"""
"""Whether any two records may be of one request: cheaper than which."""
# The record that was written first stays: so a request is late only if each of its records is.
_DUPLICATES = """
WITH records AS (
    SELECT 0 AS is_new, CAST(0 AS BIGINT) AS record_us, <columns> FROM <stored>
    WHERE <is_known> AND (<within>)
    UNION ALL
    SELECT 1 AS is_new, coalesce(<us>(record_time), <us>(event_time)) AS record_us, <columns>
    FROM <arrived>
    WHERE <is_known>
), several AS (
    SELECT <names> FROM records GROUP BY <names> HAVING count(*) > 1
), placed AS (
    SELECT
        source_topic, source_partition, source_offset, line, is_new,
        min(is_new) OVER (PARTITION BY <names>, <place>) AS is_unread,
        row_number() OVER (PARTITION BY <names> ORDER BY is_new, record_us, <place>) AS nth
    FROM records
    JOIN several USING (<names>)
)
SELECT source_topic, source_partition, source_offset, nullif(line, -1) AS source_line
FROM placed
WHERE is_new = 1 AND is_unread = 1 AND nth > 1
"""
_OF_SAME = " AND ".join(
    f"written.{name} IS NOT DISTINCT FROM duplicates.{name}" for name in _RECORD
)
_COUNT = pa.schema([pa.field("several", LONG)])


def in_files(place: Place, files: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The records of new files (rows of `table_files.FILE`) of `requests` that repeat a request.

    Returns RECORDS. A record that is in the table already is no duplicate of its own.
    """
    folder = place.path(REQUESTS.name)
    arrived = place.files(REQUESTS, [f"{folder}/{file['path']}" for file in files])
    with opened({"arrived": arrived}) as database:
        times = _table(database.query(_text(_DUCKDB, _TIMES), _TIME_ENDS), _TIME_ENDS)
        ranges = _ranges(times)
        within = FolderRelations(place).within(REQUESTS.name, ranges)
        stored = place.files(REQUESTS, [file.path for file in within])
        both = database.over({"arrived": arrived, "stored": stored})
        several = both.query(_text(_DUCKDB, _HASHED, ranges), _COUNT)
        if not _table(several, _COUNT)["several"][0].as_py():
            return RECORDS.empty_table()
        return _table(both.query(_text(_DUCKDB, _DUPLICATES, ranges), RECORDS), RECORDS)


def in_frames(arrived: "DataFrame", stored: "DataFrame") -> pa.Table:
    """As `in_files`, for new rows and the table's rows as frames."""
    spark = arrived.sparkSession
    ranges = _ranges(spark.sql(_text(_SPARK, _TIMES), arrived=arrived).toArrow())
    relations: dict[str, Any] = {"arrived": arrived, "stored": stored}
    several = spark.sql(_text(_SPARK, _HASHED, ranges), **relations).toArrow()
    if not several["several"][0].as_py():
        return RECORDS.empty_table()
    return spark.sql(_text(_SPARK, _DUPLICATES, ranges), **relations).toArrow().cast(RECORDS)


def without(rows: "DataFrame", duplicates: pa.Table) -> "DataFrame":
    """The rows that were read from other records."""
    there = frames.from_arrow(rows.sparkSession, duplicates)
    return frames.without(rows, there, _RECORD)


def rewritten(
    target: Target, file: Mapping[str, Any], table: Table, duplicates: pa.Table, place: Place
) -> Mapping[str, Any] | None:
    """A new file with the rows of other records (`table_files.FILE`); None if it would have none.

    The file that it replaces is in no commit: upkeep removes it.
    """
    written = place.files(table, [f"{place.path(table.name)}/{file['path']}"])
    names = ", ".join(map(quoted_name, table.column_names))
    sql = f"SELECT {names} FROM written ANTI JOIN duplicates ON {_OF_SAME}"
    with (
        opened({"written": written, "duplicates": duplicates}) as database,
        TableFile(target) as made,
    ):
        for batch in database.query(sql, table.arrow):
            made.write(pa.Table.from_batches([batch]))
    return made.described()


def _table(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(list(batches), schema)


def _ranges(times: pa.Table) -> list[TimeRange]:
    """Time ranges that have all these times; a time that Python cannot have is in none."""
    ends = (map(time_of, times[name].to_pylist()) for name in _TIME_ENDS.names)
    return [
        TimeRange(first, last + _MICROSECOND)
        for first, last in zip(*ends, strict=True)
        if first and last
    ]


def _text(dialect: _Dialect, sql: str, ranges: Sequence[TimeRange] = ()) -> str:
    within_times = (
        any_of(each.condition("event_time", dialect.literal) for each in ranges) or "false"
    )
    named = {
        "<columns>": ", ".join(f"{value} AS {name}" for name, value in (_KEY | _PLACE).items()),
        "<key>": ", ".join(_KEY.values()),
        "<names>": ", ".join(_KEY),
        "<place>": ", ".join(_PLACE),
        "<is_known>": " AND ".join(f"{name} IS NOT NULL" for name in columns.CONNECTION_AND_NUMBER),
        "<within>": within_times,
        "<arrived>": dialect.arrived,
        "<stored>": dialect.stored,
        "<hashed>": dialect.hashed,
        "<us>": dialect.us,
    }
    for name, text in named.items():
        sql = sql.replace(name, text)
    return sql
