"""Rules over rows of a test, without a JVM."""

import atexit
from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa

from quotaflow.pipelines.compute import local
from quotaflow.pipelines.compute.computation import Computation, KeyPart
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.database import Database, opened

Rows = list[dict[str, Any]]


@cache
def database() -> Database:
    """One database for all tests, which plans a text once for many of them."""
    database = opened({})
    atexit.register(database.__exit__, None, None, None)
    return database.__enter__()


def compute(
    result: Result,
    ranges: Iterable[TimeRange] = (EVER,),
    *,
    max_lateness_s: int | None = None,
    carried_rows: Rows | None = None,
    keys: KeyPart | None = None,
    **rows: Rows,
) -> Rows:
    """The rows of a result, from rows of the tables that it reads, by their names.

    Tables not given are empty, and columns not given are null. `carried_rows` are rows that the
    table of a sequential result has already. With `keys` only rows of some keys.
    """
    names = {result.facts.name, *(lookup.table.name for lookup in result.lookups)}
    unread = set(rows) - names
    assert not unread, f"{result.table.name} does not read {unread}"
    relations = {
        name: pa.Table.from_pylist(rows.get(name, []), schema=TABLES[name].arrow) for name in names
    }
    if result.carry_s:
        relations["carried_rows"] = pa.Table.from_pylist(
            carried_rows or [], schema=result.table.arrow
        )
    return local.compute_in(
        database().over(relations), Computation(result, tuple(ranges), max_lateness_s, keys=keys)
    ).to_pylist()
