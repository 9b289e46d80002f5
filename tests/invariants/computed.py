"""A warehouse in which everything is computed from given facts, without a JVM."""

from collections.abc import Mapping
from pathlib import Path

import duckdb

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.connections import connect

from ..rule_rows import Rows, compute
from ..schemas.views.view_tables import make_tables_and_answers


def compute_all(folder: Path, facts: Mapping[str, Rows], conf: config.Conf) -> Warehouse:
    """Facts with all results, as jobs compute them, and all answers."""
    content = dict(facts)
    for job in JOBS.values():
        for result in job.results(conf) if job.results else ():
            inputs = {result.facts.name, *(lookup.table.name for lookup in result.lookups)}
            given = {name: content[name] for name in inputs if name in content}
            rows = compute(result, **given)
            content[result.table.name] = [*content.get(result.table.name, []), *rows]
    warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
    make_tables_and_answers(warehouse, content)
    return warehouse


def everything(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    """A database with all tables and views that the warehouse can answer, computed once."""
    reader, database = FolderReader(warehouse), connect()
    for name in [*TABLES, *views.load()]:
        if all(map(reader.is_made, views.dependencies(f"SELECT * FROM {name}")[0])):
            rows = reader.query(f"SELECT * FROM {name}").read_all()
            database.register("rows", rows)
            database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM rows')
            database.unregister("rows")
    return database
