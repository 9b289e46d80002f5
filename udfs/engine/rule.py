"""What a rule is: the SQL text of one result, and all that the text reads apart from tables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from quotaflow.udfs.stores import Store

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Walk:
    """A relation that Python makes of the sorted rows of a SQL text.

    For rules that follow events in order, which SQL cannot say or says slowly. `sql` must sort its
    rows in a total order. `function` takes these rows in batches, and yields the relation `name`
    in batches of `schema`.
    """

    name: str
    sql: str
    schema: pa.Schema
    function: Callable[[Batches], Batches]


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one result: SQL of DuckDB that yields the columns of its table.

    The text reads its facts and lookup tables by name, `views` (SQL by name, each after those it
    reads), `walks`, `rows` of conf, and `$parameters`. Times are TIMESTAMP, in UTC. Macros of
    `macros.sql` are known, and `macros` (CREATE MACRO statements) of the rule's area.
    """

    name: str
    sql: str
    schema: pa.Schema
    time: str = "event_time"
    macros: str = ""
    views: Mapping[str, str] = field(default_factory=dict)
    walks: tuple[Walk, ...] = ()
    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Files:
    """A relation: Parquet files of one version of a Delta table, under the declared columns.

    A declared column that the files lack is null. `is_dated`: the table is partitioned by
    event_date, which is in the paths of its files and not in the files. `store` has the files; None
    if they are on disk. `in_memory`: a database reads them whole, and once for all rules.
    """

    paths: tuple[str, ...]
    schema: pa.Schema
    is_dated: bool = False
    store: Store | None = None
    in_memory: bool = False


Relation = Files | pa.Table
"""Rows that a rule reads: files, or a table in memory."""
