"""Rows of results that have the id of a topic and no name, once an answer or a snapshot names it.

An id never gets another name, so a name is valid for all time. A name that comes later affects the
buckets that have such rows, and no others.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.compute.result import Result, Unnamed
from quotaflow.schemas.table import STRING, TIMESTAMP, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import TOPICS
from quotaflow.udfs.engine.database import opened
from quotaflow.udfs.engine.rule import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quotaflow.pipelines.warehouse.warehouse import Warehouse

_NAMING = (TOPICS, TABLES["topic_names"])
_NAMED = pa.schema([pa.field("cluster_id", STRING), pa.field("topic_id", STRING)])
_TIMES = pa.schema([pa.field("event_time", TIMESTAMP)])
_NAMED_SQL = " UNION ".join(
    f"SELECT cluster_id, topic_id FROM {table.name} "
    "WHERE topic_id IS NOT NULL AND topic IS NOT NULL"
    for table in _NAMING
)
_TIMES_SQL = """
SELECT DISTINCT unnamed.event_time
FROM (
    SELECT cluster_id, {time} AS event_time, unnest({topic_ids}) AS topic_id
    FROM {table} WHERE {where}
) AS unnamed
SEMI JOIN named USING (cluster_id, topic_id)
"""

Reader = Callable[[Table, str, set[str]], Relation | None]
"""Reads rows of a table by a condition of both dialects, these columns at least; None: no rows."""


@dataclass(frozen=True, slots=True)
class LateNames:
    """The topic ids that have names now, and the times of rows that lack these names."""

    named: pa.Table
    read: Reader
    _times: dict[str, list[datetime]] = field(default_factory=dict)

    @classmethod
    def open(cls, spark: "SparkSession", warehouse: "Warehouse") -> "LateNames":
        """Read the ids that have names in this warehouse."""
        conf = warehouse.conf
        # A catalog has no folder, and a machine that reads one may have no home.
        read = (
            _in_catalog(spark, warehouse)
            if conf.catalog_schema
            else _in_files(FolderRelations(warehouse.place))
        )
        relations = {each.name: read(each, "true", {*_NAMED.names, "topic"}) for each in _NAMING}
        empty = {each.name: each.arrow.empty_table() for each in _NAMING}
        with opened({name: rows or empty[name] for name, rows in relations.items()}) as database:
            return cls(pa.Table.from_batches(database.query(_NAMED_SQL, _NAMED), _NAMED), read)

    @property
    def digest(self) -> str:
        """A hash of the named ids: with the same ids, rows without names stay as they are."""
        ids = sorted(map(str, self.named.to_pylist()))
        return hashlib.sha256("\n".join(ids).encode()).hexdigest()

    def times(self, result: Result) -> list[datetime]:
        """The times of rows that have an id without its name, though it has one now."""
        return [time for each in result.unnamed for time in self._times_in(each)]

    def _times_in(self, unnamed: Unnamed) -> list[datetime]:
        # Once per batch: another result of the batch may replace the rows by named ones.
        name = unnamed.table.name
        if name not in self._times:
            self._times[name] = self._read_times(unnamed)
        return self._times[name]

    def _read_times(self, unnamed: Unnamed) -> list[datetime]:
        table = unnamed.table
        needed = {"cluster_id", table.time, *texts.words(unnamed.topic_ids)}
        rows = self.read(table, unnamed.where, needed)
        if rows is None or not self.named.num_rows:
            return []
        sql = _TIMES_SQL.format(
            table=table.name,
            time=table.time,
            topic_ids=unnamed.topic_ids,
            where=unnamed.where,
        )
        with opened({table.name: rows, "named": self.named}) as database:
            times = pa.Table.from_batches(database.query(sql, _TIMES), _TIMES)
        return [row["event_time"] for row in times.to_pylist()]


def _in_files(relations: FolderRelations) -> Reader:
    def read(table: Table, _: str, __: set[str]) -> Relation | None:
        files = relations.relation(table.name)
        return files if files.paths else None

    return read


def _in_catalog(spark: "SparkSession", warehouse: "Warehouse") -> Reader:
    def read(table: Table, where: str, needed: Iterable[str]) -> Relation | None:
        columns = [name for name in TABLES[table.name].column_names if name in needed]
        words = [name for name in table.column_names if name in texts.words(where)]
        rows = warehouse.read(spark, table.name).where(where)
        names = list(dict.fromkeys([*columns, *words]))
        schema = pa.schema([table.arrow.field(name) for name in names])
        return rows.select(*names).distinct().toArrow().cast(schema)

    return read
