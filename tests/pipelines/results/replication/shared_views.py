"""Rows of SQL texts that read macros and views of `pipelines/results/shared`."""

import pyarrow as pa

from quotaflow.pipelines.compute import texts
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.database import Selection, opened
from quotaflow.udfs.engine.rule import Rule

from ....rule_rows import Rows
from ...compute.rule_tables import tables_of


def rows_of_text(sql: str, schema: pa.Schema, **rows: Rows | pa.Table) -> Rows:
    """The rows of a text, from rows of the tables that it reads. Tables not given are empty."""
    views, needed = dict[str, str](), texts.words(sql)
    for name, view in reversed([*texts.shared_views().items()]):
        if name in needed:
            views[name], needed = view, needed | texts.words(view)
    rule = Rule(
        name="text",
        sql=sql,
        schema=schema,
        macros=texts.read("shared/macros.sql"),
        views=dict(reversed(views.items())),
    )
    relations = {name: table for name, table in rows.items() if isinstance(table, pa.Table)}
    relations |= {
        name: pa.Table.from_pylist(rows.get(name, []), schema=TABLES[name].arrow)
        for name in tables_of(rule)
    }
    with opened(relations) as database:
        selections = {name: Selection() for name in relations}
        return pa.Table.from_batches(database.compute(rule, selections), schema).to_pylist()
