"""New rows of lookup tables: since when they change results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.compute.late_names import LateNames
from quotaflow.pipelines.compute.relations import FolderRelations
from quotaflow.pipelines.compute.result import LookupTable, Result
from quotaflow.pipelines.compute.result_state import ResultState
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, in_duckdb, in_spark
from quotaflow.schemas.table import STRING, TIMESTAMP
from quotaflow.udfs.engine.database import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVER = datetime.fromtimestamp(0, UTC)
# Retention removes whole days, and never the current one. So facts of the last day are there. The
# roll-up leaves rows of that day too.
_ALWAYS_KEPT = timedelta(days=1)
_NEWEST = pa.schema(
    [pa.field("newest", TIMESTAMP), pa.field("since", TIMESTAMP), pa.field("cluster_id", STRING)]
)


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows of a lookup table that are new: their newest time, its cluster, since when they count.

    All None without new rows.
    """

    newest: datetime | None = None
    since: datetime | None = None
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class LookupChanges:
    """New rows of lookup tables, and the time since which facts are kept.

    Each table is read once per batch. `relations` are None in a catalog.
    """

    spark: "SparkSession"
    batch: Batch
    relations: FolderRelations | None
    _new_rows: dict[tuple[str, str, datetime | None], NewRows] = field(default_factory=dict)
    _kept: dict[str, datetime | None] = field(default_factory=dict)

    @classmethod
    def open(cls, spark: "SparkSession", batch: Batch) -> "LookupChanges":
        """Open the tables of the batch's warehouse."""
        # A catalog has no folder, and a machine that reads one may have no home.
        has_files = not batch.warehouse.conf.catalog_schema
        return cls(spark, batch, FolderRelations(batch.warehouse.place) if has_files else None)

    def changes_for(
        self, result: Result, state: ResultState
    ) -> tuple[datetime | None, Mapping[str, datetime], list[tuple[datetime, str]]]:
        """Since when new lookup rows are valid, how far lookups are read, and the newest rows."""
        sinces, seen, latest = list[datetime](), dict(state.context_seen), []
        for lookup in result.lookups:
            if lookup.valid_from is None:
                continue
            name = lookup.table.name
            new = self._new(lookup, lookup.valid_from, seen.get(name))
            if new.newest is None or new.since is None:
                continue
            # A query that starts has computed nothing yet that could be older than its lookups.
            if name in seen or self.batch.batch_id:
                is_first = lookup.reaches_back and name not in seen
                sinces.append(_EVER if is_first else new.since)
                latest.append((new.newest, str(new.cluster_id)))
            seen[name] = new.newest
        return min(sinces, default=None), seen, latest

    def computable(self, result: Result, time_ranges: list[TimeRange]) -> list[TimeRange]:
        """The time ranges without times whose facts retention removed: those rows stay.

        Of rows that upkeep may have rolled up, the ranges are whole hours.
        """
        if not time_ranges or time_ranges[0].start >= datetime.now(UTC) - _ALWAYS_KEPT:
            return time_ranges
        if result.rolls_up:
            time_ranges = result.whole_hours(time_ranges)
        name = result.facts.name
        if name not in self._kept:
            self._kept[name] = self.batch.warehouse.kept_since(self.spark, name)
        kept_since = self._kept[name]
        return time_ranges if kept_since is None else result.computable(time_ranges, kept_since)

    def late_names(self) -> LateNames:
        """The topic ids that have names now, as the tables are when this is called."""
        return LateNames.open(self.spark, self.batch.warehouse)

    def _new(self, lookup: LookupTable, valid_from: str, seen: datetime | None) -> NewRows:
        key = lookup.table.name, valid_from, seen
        if key not in self._new_rows:
            # Read before the result is computed: rows that arrive later are new to the next batch.
            self._new_rows[key] = (
                self._in_catalog(lookup, valid_from, seen)
                if self.relations is None
                else _in_files(self.relations, lookup, valid_from, seen)
            )
        return self._new_rows[key]

    def _in_catalog(self, lookup: LookupTable, valid_from: str, seen: datetime | None) -> NewRows:
        target = self.batch.warehouse.target(lookup.table.name)
        after = "true" if seen is None else f"{lookup.table.time} > {in_spark(seen)}"
        rows = self.spark.sql(_newest(lookup, valid_from, after).format(source=target)).toArrow()
        return NewRows(**rows.cast(_NEWEST).to_pylist()[0])


def _in_files(
    relations: FolderRelations, lookup: LookupTable, valid_from: str, seen: datetime | None
) -> NewRows:
    name, time = lookup.table.name, lookup.table.time
    files = relations.files(name)
    paths = [file.path for file in files if seen is None or file.may_have(seen, None)]
    if not paths:
        return NewRows()
    after = "true" if seen is None else f"{time} > {in_duckdb(seen)}"
    relation = relations.place.files(lookup.table, paths)
    with opened({name: relation}) as database:
        rows = database.query(_newest(lookup, valid_from, after).format(source=name), _NEWEST)
        return NewRows(**next(rows).to_pylist()[0])


def _newest(lookup: LookupTable, valid_from: str, after: str) -> str:
    """SQL that Spark and DuckDB read alike, without its `source`."""
    time = lookup.table.time
    return (
        f"SELECT max({time}) AS newest, min({valid_from}) AS since, "
        f"max_by(cluster_id, {time}) AS cluster_id FROM {{source}} WHERE {after}"
    )
